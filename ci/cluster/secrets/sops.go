package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	sops "github.com/getsops/sops/v3/decrypt"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/secrets/sopsfile"
)

// decrypt reads a SOPS file of texts by name. Each way to fail is one line that names the file and the fix; causes from the
// libraries are left out where they could quote a key or a value.
func decrypt(file, ageKey string) (map[string]string, error) {
	format, err := formatOf(file)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: copy secrets.example.yaml beside it, fill it in and encrypt it with sops, or take its name out of secrets.sops", file)
	}
	if err != nil {
		return nil, fmt.Errorf("the bootstrap secrets: %w", err)
	}
	recipients, err := recipientsOf(file, data)
	if err != nil {
		return nil, err
	}
	if err := checkKey(file, ageKey, recipients); err != nil {
		return nil, err
	}
	clear, err := decryptWith(ageKey, data, format)
	if err != nil {
		return nil, fmt.Errorf("%s was changed after it was encrypted, its authentication fails: restore it, and change it with \"sops edit %s\" only", file, file)
	}
	return textsOf(file, clear)
}

func formatOf(file string) (string, error) {
	switch filepath.Ext(file) {
	case ".yaml", ".yml":
		return "yaml", nil
	case ".json":
		return "json", nil
	default:
		return "", fmt.Errorf("%s is neither .yaml nor .json: name SOPS files of one of these in secrets.sops", file)
	}
}

// recipientsOf reads the public keys that a SOPS file is encrypted to.
func recipientsOf(file string, data []byte) ([]string, error) {
	type group struct {
		Age []struct {
			Recipient string `yaml:"recipient"`
		} `yaml:"age"`
	}
	var document struct {
		SOPS *struct {
			group     `yaml:",inline"`
			KeyGroups []group `yaml:"key_groups"`
		} `yaml:"sops"`
	}
	if yaml.Unmarshal(data, &document) != nil {
		return nil, fmt.Errorf("%s is not a SOPS file: it cannot be read as YAML or JSON", file)
	}
	if document.SOPS == nil {
		return nil, fmt.Errorf("%s is not encrypted: encrypt it with \"sops encrypt --in-place --age age1… %s\", and take what is in it for known if it was ever committed", file, file)
	}
	var recipients []string
	for _, g := range append(document.SOPS.KeyGroups, document.SOPS.group) {
		for _, key := range g.Age {
			recipients = append(recipients, key.Recipient)
		}
	}
	if len(recipients) == 0 {
		return nil, fmt.Errorf("%s is not encrypted to an age key: add one with \"sops updatekeys\"", file)
	}
	return recipients, nil
}

// checkKey finds a wrong key before SOPS would look for others in the environment and the home folder.
func checkKey(file, ageKey string, recipients []string) error {
	wanted := strings.Join(recipients, " or ")
	if strings.TrimSpace(ageKey) == "" {
		return fmt.Errorf("no age key was given: %s is encrypted to %s, give the private key of it", file, wanted)
	}
	given, err := sopsfile.Recipients(ageKey)
	if err != nil {
		return fmt.Errorf("%w: %s is encrypted to %s, give the private key of it", err, file, wanted)
	}
	if slices.ContainsFunc(given, func(recipient string) bool { return slices.Contains(recipients, recipient) }) {
		return nil
	}
	return fmt.Errorf("wrong age key: %s is encrypted to %s, the key given is that of %s", file, wanted, strings.Join(given, " and "))
}

// AgeKeyVariable is the variable of the environment that holds the key's text, as SOPS itself has it.
const AgeKeyVariable = "SOPS_AGE_KEY"

// The SOPS library takes keys from the process's environment only, which is one for all: no two decryptions at a time.
var environment sync.Mutex

// decryptWith lends SOPS the key by the environment of this process for as long as it decrypts, and hides the other ways
// that it would take, one of which runs a command. No child may be started meanwhile, or it would inherit the key.
func decryptWith(ageKey string, data []byte, format string) ([]byte, error) {
	environment.Lock()
	defer environment.Unlock()
	for _, name := range []string{AgeKeyVariable, "SOPS_AGE_KEY_FILE", "SOPS_AGE_KEY_CMD", "SOPS_AGE_SSH_PRIVATE_KEY_FILE", "SOPS_AGE_SSH_PRIVATE_KEY_CMD"} {
		if before, set := os.LookupEnv(name); set {
			defer os.Setenv(name, before)
		} else {
			defer os.Unsetenv(name)
		}
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if err := os.Setenv(AgeKeyVariable, ageKey); err != nil {
		return nil, err
	}
	return sops.Data(data, format)
}

func textsOf(file string, clear []byte) (map[string]string, error) {
	var document map[string]yaml.Node
	if yaml.Unmarshal(clear, &document) != nil {
		return nil, fmt.Errorf("%s does not hold names and texts", file)
	}
	texts := map[string]string{}
	for name, node := range document {
		if node.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: %s is not a text", file, name)
		}
		texts[name] = node.Value
	}
	return texts, nil
}
