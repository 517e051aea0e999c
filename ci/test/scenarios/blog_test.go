//go:build linux

package scenarios

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seedTag is the blog's tag in the Git repository that a world starts with.
const seedTag = "blog-0000000"

// pushTag changes the blog's tag in Git, as a publisher does.
func (w *world) pushTag(from, to string) {
	w.t.Helper()
	seed := w.seed()
	remote := url.URL{Scheme: "http", User: url.UserPassword("scenario", seed.Git.Token), Host: "192.168.77.12", Path: "/" + seed.Git.Repository + ".git"}
	work := filepath.Join(w.folder, "work")
	w.git(w.folder, "clone", "--quiet", remote.String(), work)
	file := filepath.Join(work, "apps", "base", "hugo-blog", "hugo-blog.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	changed := strings.Replace(string(data), ":"+from+`"`, ":"+to+`"`, 1)
	if changed == string(data) {
		w.t.Fatalf("the blog's manifest does not name %s", from)
	}
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.git(work, "commit", "--quiet", "--all", "--message=Publish "+to)
	w.git(work, "push", "--quiet", "origin", "HEAD")
}

// pushImage has the world's registry hold the blog's image.
func (w *world) pushImage(tag string) {
	w.t.Helper()
	reference, err := name.ParseReference(w.seed().Registry.String()+"/tazzo/tazlab.net:"+tag, name.Insecure)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{DialContext: w.dial, DisableKeepAlives: true}
	if err := remote.Write(reference, w.blog, remote.WithContext(w.t.Context()), remote.WithTransport(transport)); err != nil {
		w.t.Fatal(err)
	}
}

// lacksTheImage waits until a pod of the blog says that its image is nowhere.
func (k kube) lacksTheImage(tag string) {
	k.world.t.Helper()
	k.world.until(2*time.Minute, "a pod lacks "+tag, func() (string, bool) {
		pods, err := k.typed.CoreV1().Pods("blog").List(k.world.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		var seen []string
		for _, pod := range pods.Items {
			for _, container := range pod.Status.ContainerStatuses {
				waiting := container.State.Waiting
				if waiting == nil {
					continue
				}
				if waiting.Reason == "ImagePullBackOff" && strings.Contains(waiting.Message, tag+": not found") {
					return "", true
				}
				seen = append(seen, fmt.Sprintf("%s: %s", waiting.Reason, waiting.Message))
			}
		}
		return strings.Join(seen, "\n"), false
	})
}
