package gosdk

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/copytree"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/setup/mirror"
	"tazlab.net/castle/ci/test/needs"
)

// toolchain is the stand-in for the image that Go code is compiled in.
func toolchain(t *testing.T, ctx context.Context) v1.Image {
	t.Helper()
	all, err := images.Load("../../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golang, err := all.Get("golang")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(needs.Cache(t), "mirror")
	if _, err := mirror.Build(ctx, mirror.BuildOptions{Cache: cache, List: images.List{golang}}); err != nil {
		t.Fatal(err)
	}
	addresses, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- mirror.Serve(ctx, mirror.ServeOptions{Cache: cache, Addr: "127.0.0.1:0", Ready: func(address net.Addr) { addresses <- address }})
	}()
	select {
	case address := <-addresses:
		reference, err := name.ParseReference(address.String()+"/"+golang.Repository()+":"+golang.Tag, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(reference, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
		if err != nil {
			t.Fatal(err)
		}
		return image
	case err := <-ended:
		t.Fatal(err)
	}
	return nil
}

// compilesNothing is what the go command calls in a compiler's place: it may be asked for its version, by which cached work is looked up.
const compilesNothing = `#!/bin/sh
case "$*" in *-V=full*) exec "$@" ;; esac
echo "not compiled beforehand: $TOOLEXEC_IMPORTPATH" >&2
exit 1
`

var notCompiled = regexp.MustCompile(`not compiled beforehand: (\S+)`)

func TestTheSDKCompilesFromItsCachesAlone(t *testing.T) {
	needs.Slow(t)
	needs.FullRun(t, "fills the compiler's caches in a real root", "a Debian machine with root, Go and a mirror")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	image := toolchain(t, ctx)
	sdk := filepath.Join(needs.Tool(t, "dagger"), "go-sdk")
	made := Caches{Folder: t.TempDir(), Module: sdk}
	layer, err := made.Layer(ctx, image)
	if err != nil {
		t.Fatal(err)
	}
	again, err := made.Layer(ctx, image)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := layer.Digest()
	if second, _ := again.Digest(); second != first {
		t.Errorf("made once more: %s and %s", first, second)
	}

	root := t.TempDir()
	if err := unpack(ctx, image, root); err != nil {
		t.Fatal(err)
	}
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	untar := exec.CommandContext(ctx, "tar", "--extract", "--directory", root)
	untar.Stdin = content
	if err := run(untar); err != nil {
		t.Fatal(err)
	}
	if err := copytree.Over(sdk, filepath.Join(root, "src")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/local/bin/compiles-nothing"), []byte(compilesNothing), 0o755); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, packages := range []string{".", "std"} {
		build := exec.CommandContext(ctx, "/usr/bin/env", "go", "build", "-toolexec=/usr/local/bin/compiles-nothing", packages)
		build.Dir, build.Env = "/src", environment(config)
		build.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		output, err := build.CombinedOutput()
		if packages == "std" && err != nil {
			t.Errorf("the standard library: %v: %s", err, output)
		}
		// The SDK's own packages stand somewhere else here, as they do in each module that is generated.
		for _, missing := range notCompiled.FindAllStringSubmatch(string(output), -1) {
			if missing[1] != "dagger.io/dagger" && !strings.HasPrefix(missing[1], "dagger.io/dagger/") {
				t.Errorf("%s was not compiled beforehand", missing[1])
			}
		}
	}
}
