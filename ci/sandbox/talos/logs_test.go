package talos

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
)

// log is the whole log of a part of Talos on machine number i.
func (y *yard) log(i int, of string) (string, error) {
	y.t.Helper()
	stream, err := y.at(i, y.admin).Logs(context.Background(), constants.SystemContainerdNamespace, common.ContainerDriver_CONTAINERD, of, false, -1)
	if err != nil {
		return "", err
	}
	var log strings.Builder
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return log.String(), nil
		}
		if err != nil {
			return "", err
		}
		log.Write(part.GetBytes())
	}
}

func TestTheLogSaysUntilTheNextStartWhereBootstrapWasCalled(t *testing.T) {
	const line = "service[etcd](Finished): Bootstrap requested\n"
	y := newYard(t, 0)
	y.cluster(2)
	for i, want := range map[int]bool{1: true, 2: false} {
		if log, err := y.log(i, "machined"); err != nil || strings.Contains(log, line) != want || !strings.Contains(log, "service[apid](Running)") {
			t.Errorf("machine %d: %v\n%s", i, err, log)
		}
	}
	if _, err := y.log(1, "etcd"); client.StatusCode(err) != codes.Unknown {
		t.Errorf("another log: %v", err)
	}
	if err := y.fleet.PowerOff(1); err != nil {
		t.Fatal(err)
	}
	y.on(1)
	y.stage(1, stageRunning)
	if log, err := y.log(1, "machined"); err != nil || strings.Contains(log, line) {
		t.Errorf("after a power cut: %v\n%s", err, log)
	}
}
