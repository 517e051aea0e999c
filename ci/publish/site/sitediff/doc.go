// Package sitediff compares two builds of one site and says what differs and why, as far as the differences tell.
//
// Two files that differ are cut where markup, quotes and lines end, so that a piece is a text, an attribute's value or a line.
// What was replaced by what is judged piece by piece: pieces that are equal but for their times come from a clock, those that
// are equal but for long hexadecimal numbers from chance, and so on; the table of causes says it in order. The cause is a guess
// about the site's templates, which are not read, so each comes with examples.
package sitediff
