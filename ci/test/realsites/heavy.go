package realsites

import (
	"fmt"
	"path/filepath"

	"tazlab.net/castle/ci/bench/sitegen"
)

// The heavy site is as large as a blog that has been kept for years: with its lists, some 900 pages and 240 processed pictures.
const (
	heavyPosts    = 400
	heavyPictures = 60
)

// Heavy is the site blowfish with as many articles as a blog gathers over years, each in English and Italian, some with a
// picture that the theme processes. The seed chooses the texts.
func Heavy(seed int64) Site {
	return Site{
		Name:  "heavy",
		About: "Blowfish as a submodule with some 900 pages in two languages and 240 processed pictures",
		write: func(t *tree) error {
			if err := writeBlowfish(t); err != nil {
				return err
			}
			picture, err := drawing()
			if err != nil {
				return err
			}
			for n := 1; n <= heavyPosts; n++ {
				folder := heavyPost(n)
				files := map[string]string{
					filepath.Join(folder, "index.md"):    string(sitegen.Page(seed, n)),
					filepath.Join(folder, "index.it.md"): string(sitegen.Page(seed+1, n)),
				}
				if n <= heavyPictures {
					// A byte behind the picture's end makes each another file to Hugo.
					files[filepath.Join(folder, "feature.png")] = string(append(picture, byte(n)))
				}
				if err := t.write(files); err != nil {
					return err
				}
			}
			return t.edit("content/posts", "(/", "(https://example.org/")
		},
	}
}

// TouchHeavy changes one comma of article n of the heavy site in dir.
func TouchHeavy(dir string, n int) error {
	return sitegen.TouchFile(filepath.Join(dir, heavyPost(n), "index.md"))
}

func heavyPost(n int) string { return fmt.Sprintf("content/posts/page-%05d", n) }
