package calls

import "strings"

// core are those functions of Dagger's own objects that a pipeline of castle's ends with, as v0.19 has them: a line each, the
// flags that are required with an exclamation mark.
var core = map[string]Type{
	"Directory": coreType("export --path! --wipe", "entries --path", "glob --pattern!", "file --path! > File", "directory --path! > Directory", "digest"),
	"File":      coreType("export --path! --allow-parent-dir-path", "contents", "name", "size", "digest"),
	"Secret":    coreType("plaintext", "name"),
	"Container": coreType("publish --address! --platform-variants --forced-compression --media-types", "export --path!", "as-tarball > File", "terminal",
		"with-exec --args! > Container", "stdout", "stderr", "directory --path! > Directory", "file --path! > File", "image-ref", "as-service > Service", "up --ports --random"),
	"Service":   coreType("up --ports --random", "start", "stop", "endpoint --port --scheme", "hostname", "ports"),
	"Changeset": coreType("export --path!", "as-patch > File", "added-paths", "modified-paths", "removed-paths", "layer > Directory", "is-empty"),
}

// coreSwitches need no value.
var coreSwitches = map[string]bool{"wipe": true, "allow-parent-dir-path": true, "random": true}

func coreType(lines ...string) Type {
	of := Type{}
	for _, line := range lines {
		line, returns, _ := strings.Cut(line, " > ")
		words := strings.Fields(line)
		f := Function{Arguments: map[string]Argument{}, Returns: returns}
		for _, word := range words[1:] {
			name := strings.Trim(word, "-!")
			argument := Argument{Type: "string", Required: strings.HasSuffix(word, "!")}
			if coreSwitches[name] {
				argument.Type = "bool"
			}
			f.Arguments[name] = argument
		}
		of[words[0]] = f
	}
	return of
}

// own are the dagger command's flags, which may stand anywhere, and whether each takes a value.
var own = map[string]bool{
	"-m": true, "--mod": true, "-o": true, "--output": true, "--progress": true, "-w": true, "--workdir": true,
	"-y": false, "--auto-apply": false, "-q": false, "--quiet": false, "-s": false, "--silent": false, "-v": false, "--verbose": false, "-vv": false, "-vvv": false,
	"-d": false, "--debug": false, "-i": false, "--interactive": false, "-j": false, "--json": false, "-E": false, "--no-exit": false, "--help": false, "-h": false,
	"-x": true, "--allow-llm": true, "--eager-runtime": false,
}
