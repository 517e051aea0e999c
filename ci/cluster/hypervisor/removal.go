package hypervisor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luthermonson/go-proxmox"
)

const (
	removalLimit = 15 * time.Minute // a clone under way cannot be removed before its end
	removalTries = 5                // Proxmox's locks answer with errors that pass
	removalEvery = time.Second
)

var removalPatience = Patience{Tries: removalTries, Pause: removalEvery}

// removing is how one VM goes.
type removing struct {
	id int
	// listed and read tell why it is another VM than the one that is meant: by the list of VMs, and by its configuration once nothing locks it.
	listed func(VM) error
	read   func(*proxmox.VirtualMachine) error
	tell   func(string) // what is done, or waited for
}

// remove stops a VM and removes it. It waits for tasks of Proxmox's that hold it. did tells that it was there.
func (h *Hypervisor) remove(ctx context.Context, r removing) (did bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, removalLimit)
	defer cancel()
	for refused, abandoned := 0, 0; ; {
		there, err := h.patientVMs(ctx)
		if err != nil {
			return did, err
		}
		now, has := there[r.id]
		if !has {
			return did, nil
		}
		if err := r.listed(now); err != nil {
			return did, err
		}
		did = true
		lock, err := h.removalStep(ctx, now, r)
		switch {
		case lock != "":
			r.tell(fmt.Sprintf("locked (%s)", lock))
			busy, err := h.busy(ctx, now.ID)
			if err != nil {
				if refused++; refused >= removalTries {
					return did, err
				}
				busy = true
			}
			// A task shows up a moment after its lock does.
			if abandoned++; busy {
				abandoned = 0
			}
			if abandoned >= removalTries {
				return did, fmt.Errorf("VM %d is locked (%s), and no task of Proxmox's runs on it; a token must not remove that: type \"qm unlock %d\" on %s, and call again", now.ID, lock, now.ID, now.Host)
			}
		case err != nil:
			if refused++; refused >= removalTries || ctx.Err() != nil {
				return did, fmt.Errorf("VM %d %s on %s: %w", now.ID, now.Name, now.Host, err)
			}
		default:
			continue
		}
		select {
		case <-time.After(removalEvery):
		case <-ctx.Done():
			return did, fmt.Errorf("VM %d %s on %s is still there: %w", now.ID, now.Name, now.Host, context.Cause(ctx))
		}
	}
}

// removalStep stops a VM, or removes one that is off. A locked one is left as it is.
func (h *Hypervisor) removalStep(ctx context.Context, vm VM, r removing) (lock string, err error) {
	machine, err := h.machine(ctx, vm)
	switch {
	case err != nil:
		return "", err
	case machine.Lock != "":
		return machine.Lock, nil
	}
	if err := r.read(machine); err != nil {
		return "", err
	}
	if machine.IsRunning() {
		r.tell("it is stopped")
		return "", ended(ctx, machine.Stop)
	}
	r.tell("it is removed")
	return "", ended(ctx, func(ctx context.Context) (*proxmox.Task, error) {
		return machine.Delete(ctx, &proxmox.VirtualMachineDeleteOptions{Purge: true})
	})
}

// busy tells whether a task of Proxmox's runs on a VM, or may: whose token lacks Sys.Audit is shown none, not even its own (PVE/API2/Cluster.pm of
// pve-manager 8.4, tasks).
func (h *Hypervisor) busy(ctx context.Context, id int) (bool, error) {
	cluster, err := h.client.Cluster(ctx)
	if err != nil {
		return false, err
	}
	tasks, err := cluster.Tasks(ctx)
	if err != nil {
		return false, err
	}
	works := slices.ContainsFunc(tasks, func(task *proxmox.Task) bool {
		// A clone is a task of the VM that is copied.
		return task.EndTime.IsZero() && (task.ID == strconv.Itoa(id) || strings.Contains(task.Type, "clone"))
	})
	if works {
		return true, nil
	}
	held, err := h.client.Permissions(ctx, &proxmox.PermissionsOptions{Path: "/"})
	_, sees := held["/"]["Sys.Audit"]
	return !sees, err
}

// ended starts a task and waits for its end.
func ended(ctx context.Context, start func(context.Context) (*proxmox.Task, error)) error {
	task, err := start(ctx)
	if err != nil {
		return err
	}
	if err := task.Wait(ctx, removalEvery/2, removalLimit); err != nil {
		return err
	}
	// "WARNINGS: 1" has done what was asked for: upid_status_is_error in src/PVE/Tools.pm of pve-common.
	if task.IsFailed && !strings.HasPrefix(task.ExitStatus, "WARNINGS: ") {
		return fmt.Errorf("proxmox's task ended with %s", task.ExitStatus)
	}
	return nil
}
