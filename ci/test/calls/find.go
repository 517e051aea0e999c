package calls

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"
)

// Found is a command that begins with "dagger".
type Found struct {
	Line  int
	Words []string
	// Quoted is one in the middle of a sentence, which may just name a function: `dagger call create` is then no command to type.
	Quoted bool
}

// begins is where one starts that calls a function, also behind other output of a terminal.
var begins = regexp.MustCompile(`(?:^|[\s@$("'` + "`" + `])(dagger(?:\s+-\S+(?:\s+[^\s-]\S*)??)*\s+call(?:\s|$))`)

// InMarkdown are the commands in a document's code.
func InMarkdown(source []byte) ([]Found, error) {
	var all []Found
	err := ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.CodeSpan:
			var span strings.Builder
			start := 0
			for child := node.FirstChild(); child != nil; child = child.NextSibling() {
				segment := child.(*ast.Text).Segment
				if start == 0 {
					start = segment.Start
				}
				span.Write(segment.Value(source))
			}
			found, err := inLine("`"+strings.ReplaceAll(span.String(), "\n", " ")+"`", lineAt(source, start))
			all = append(all, found...)
			return ast.WalkSkipChildren, err
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if node.Lines().Len() == 0 {
				return ast.WalkContinue, nil
			}
			found, err := inLines(string(node.Lines().Value(source)), lineAt(source, node.Lines().At(0).Start))
			all = append(all, found...)
			return ast.WalkContinue, err
		}
		return ast.WalkContinue, nil
	})
	return all, err
}

func lineAt(source []byte, offset int) int { return 1 + strings.Count(string(source[:offset]), "\n") }

// inLines reads what is typed and what is answered, mixed. A line that ends in a backslash goes on in the next.
func inLines(block string, first int) ([]Found, error) {
	var all []Found
	line, from := "", first
	for part := range strings.SplitSeq(block, "\n") {
		first++
		if joined, goes := strings.CutSuffix(part, `\`); goes {
			line += joined
			continue
		}
		found, err := inLine(line+part, from)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		line, from = "", first
	}
	return all, nil
}

func inLine(line string, number int) ([]Found, error) {
	at := begins.FindStringSubmatchIndex(line)
	if at == nil {
		return nil, nil
	}
	command, quoted := line[at[2]:], at[2] > 0 && line[at[2]-1] == '`'
	if quoted {
		command, _, _ = strings.Cut(command, "`")
	}
	// Only the command itself: what stands behind it may need what stood before it.
	var all []Found
	err := syntax.NewParser().Stmts(strings.NewReader(command), func(statement *syntax.Stmt) bool {
		all = commands(statement, number)
		return false
	})
	for i := range all {
		all[i].Quoted = quoted
	}
	if err != nil && all == nil {
		return nil, fmt.Errorf("line %d cannot be read as Bash does: %w", number, err)
	}
	return all, nil
}

// InScript are the commands of a shell script, and those that its comments quote.
func InScript(source []byte) ([]Found, error) {
	found, err := inShell(string(source), 1)
	if err != nil {
		return nil, err
	}
	quoted, err := InComments(source)
	return append(found, quoted...), err
}

// InWorkflow are the commands that the steps of a workflow or an action run, and those that its comments quote.
func InWorkflow(source []byte) ([]Found, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	all, err := InComments(source)
	if err != nil {
		return nil, err
	}
	for script := range scripts(&document) {
		first := script.Line
		if script.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			first++
		}
		found, err := inShell(script.Value, first)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// scripts are the values of all keys "run" that are texts.
func scripts(node *yaml.Node) func(func(*yaml.Node) bool) {
	return func(yield func(*yaml.Node) bool) {
		for i, child := range node.Content {
			if node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "run" && child.Kind == yaml.ScalarNode {
				if !yield(child) {
					return
				}
			}
			for found := range scripts(child) {
				if !yield(found) {
					return
				}
			}
		}
	}
}

var quoted = regexp.MustCompile("`(dagger [^`]+)`")

// InComments are the commands that lines beginning with # have in backticks.
func InComments(source []byte) ([]Found, error) {
	var comments strings.Builder
	for line := range strings.Lines(string(source)) {
		if text, is := strings.CutPrefix(strings.TrimSpace(line), "#"); is {
			comments.WriteString(text)
		}
		comments.WriteString("\n")
	}
	all := comments.String()
	var commands []Found
	for _, at := range quoted.FindAllStringSubmatchIndex(all, -1) {
		found, err := inLine("`"+strings.ReplaceAll(all[at[2]:at[3]], "\n", " ")+"`", lineAt([]byte(all), at[2]))
		if err != nil {
			return nil, err
		}
		commands = append(commands, found...)
	}
	return commands, nil
}

// InMakefile are the commands of a Makefile's recipes, each in a line of its own.
func InMakefile(source []byte) ([]Found, error) {
	return inLines(strings.ReplaceAll(string(source), "$$", "$"), 1)
}

// inShell are the commands in what a shell is given.
func inShell(script string, first int) ([]Found, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("line %d and what follows cannot be read as Bash does: %w", first, err)
	}
	return commands(file, first), nil
}

// commands are those in a part of a script that begins in a line.
func commands(part syntax.Node, first int) []Found {
	var all []Found
	arrays := map[string][]string{} // what a script puts into one is part of the command that it ends in
	syntax.Walk(part, func(node syntax.Node) bool {
		command, is := node.(*syntax.CallExpr)
		if !is {
			return true
		}
		for _, assigned := range command.Assigns {
			if assigned.Array != nil {
				for _, element := range assigned.Array.Elems {
					arrays[assigned.Name.Value] = append(arrays[assigned.Name.Value], value(element.Value))
				}
			}
		}
		var words []string
		for _, word := range command.Args {
			if text := value(word); words != nil || text == "dagger" { // exec and time may stand before it
				if array := arrayIn(word); words != nil && arrays[array] != nil {
					words = append(words, arrays[array]...)
					continue
				}
				words = append(words, text)
			}
		}
		if words != nil {
			all = append(all, Found{Line: first + int(command.Pos().Line()) - 1, Words: words})
		}
		return true
	})
	return all
}

// arrayIn is the name of the array that a word is all of: "${flags[@]}".
func arrayIn(word *syntax.Word) string {
	if len(word.Parts) != 1 {
		return ""
	}
	quoted, is := word.Parts[0].(*syntax.DblQuoted)
	if !is || len(quoted.Parts) != 1 {
		return ""
	}
	expansion, is := quoted.Parts[0].(*syntax.ParamExp)
	if !is || expansion.Index == nil {
		return ""
	}
	return expansion.Param.Value
}

// value is what a word is as far as it is known.
func value(word *syntax.Word) string {
	var text strings.Builder
	var write func([]syntax.WordPart)
	write = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				text.WriteString(strings.ReplaceAll(part.Value, "\\\n", ""))
			case *syntax.SglQuoted:
				text.WriteString(part.Value)
			case *syntax.DblQuoted:
				write(part.Parts)
			default:
				text.WriteString(unknown)
			}
		}
	}
	write(word.Parts)
	return text.String()
}
