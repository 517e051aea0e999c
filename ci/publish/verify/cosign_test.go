package verify_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/publish/imagesign"
	"tazlab.net/castle/ci/publish/publishtest"
)

// tool is cosign itself, in a folder of its own, with the registry's credentials where cosign looks for them.
type tool struct {
	program, folder string
	environment     []string
}

// newTool asks for what only `make test-cosign` builds.
func newTool(t *testing.T, w *publishtest.World) tool {
	t.Helper()
	program := os.Getenv("CASTLE_COSIGN")
	if program == "" {
		t.Skip("NOT RUN: it needs cosign; `make test-cosign` builds it")
	}
	folder := t.TempDir()
	credentials := base64.StdEncoding.EncodeToString([]byte("robot:" + publishtest.RegistryPassword))
	if err := os.WriteFile(filepath.Join(folder, "config.json"), fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, w.RegistryHost, credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	return tool{program, folder, append(os.Environ(), "DOCKER_CONFIG="+folder, "HOME="+folder, "COSIGN_PASSWORD="+publishtest.CosignPassword)}
}

func (c tool) run(t *testing.T, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, c.program, args...)
	command.Dir, command.Env = c.folder, c.environment
	out, err := command.CombinedOutput()
	t.Logf("cosign %s: %v\n%s", args[0], err, out)
	return err
}

func (c tool) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCosignVerifiesWhatCastleSigned(t *testing.T) {
	w, done := published(t)
	itself := newTool(t, w)
	image := w.Image() + "@" + done.Image.Digest
	for name, pair := range map[string]publishtest.Pair{"its own key": publishtest.Keys(), "another key": publishtest.OtherKeys()} {
		itself.write(t, "key.pub", pair.Public)
		own := pair.Public == publishtest.Keys().Public
		if err := itself.run(t, "verify", "--key", "key.pub", "--insecure-ignore-tlog=true", image); (err == nil) != own {
			t.Errorf("the signature, with %s: %v", name, err)
		}
		if err := itself.run(t, "verify-attestation", "--key", "key.pub", "--insecure-ignore-tlog=true", "--type", "spdxjson", image); (err == nil) != own {
			t.Errorf("the SBOM, with %s: %v", name, err)
		}
	}
}

func TestCastleVerifiesWhatCosignSigned(t *testing.T) {
	w := publishtest.New(t)
	itself := newTool(t, w)
	digest := publishtest.MustRun(t, w.Options(t, "5d6e7f8", publishtest.NewImage(t))).Image.Digest
	itself.write(t, "sbom.json", `{"spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "name": "blog", "packages": []}`)

	for _, args := range [][]string{
		{"generate-key-pair"},
		{"sign", "--key", "cosign.key", "--tlog-upload=false", "--yes", w.Image() + "@" + digest},
		{"attest", "--key", "cosign.key", "--tlog-upload=false", "--yes", "--type", "spdxjson", "--predicate", "sbom.json", w.Image() + "@" + digest},
	} {
		if err := itself.run(t, args...); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(itself.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	signer, err := cosign.NewSigner(read("cosign.key"), publishtest.CosignPassword)
	if err != nil {
		t.Fatalf("cosign's own key: %v", err)
	}
	o := options(w)
	if o.Key, err = cosign.NewVerifier(read("cosign.pub")); err != nil || o.Key.Fingerprint() != signer.Verifier().Fingerprint() {
		t.Fatalf("cosign's own pair: %v", err)
	}
	if result := mustRun(t, o); result.Failed() || result.Digest != digest {
		t.Errorf("%s", result.Text())
	}
	image := imagesign.Image{Registry: w.Access(), Repository: w.Image(), Digest: digest}
	if already, err := imagesign.Sign(t.Context(), image, signer); !already || err != nil {
		t.Errorf("castle signs again what cosign signed with the same key: %v", err)
	}
}
