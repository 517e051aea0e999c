//go:build linux

package inside

import (
	"net/http"
	"time"
)

// KubeletName and KubeletProgram are what Talos starts in the kubelet's image (internal/app/machined/pkg/system/services/kubelet.go of Talos
// 1.13).
const (
	KubeletName    = "kubelet"
	KubeletProgram = "/usr/local/bin/" + KubeletName
)

// healthz is where Talos asks a kubelet how it is (HealthFunc in internal/app/machined/pkg/system/services/kubelet.go of Talos 1.13).
const healthz = "127.0.0.1:10248"

// Kubelet says that it is well, and is no kubelet: it registers no node and starts no pod. Talos's virtual address wants one that runs
// (waitForPreconditions in internal/app/machined/pkg/controllers/network/operator/vip.go of Talos 1.13).
func Kubelet() error {
	return answer(healthz)
}

// answer says to every request at an address that all is well.
func answer(address string) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusOK) })}
	return server.ListenAndServe()
}
