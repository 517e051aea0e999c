package proxmox

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/sandbox/profile"
)

func TestAVMLivesFromItsCloneToItsRemoval(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	vm := w.configured(t, 521, "sandbox-cp-1", "192.168.77.211/24", map[string]any{"tags": "sandbox;castle", "onboot": 1})

	resize, err := vm.ResizeDisk(ctx, "scsi0", "40G")
	done(t, resize, err)
	start, err := vm.Start(ctx)
	done(t, start, err)
	w.machines.waitFor(t, "on sandbox-cp-1")

	told, _ := w.machines.vm(521)
	want := VM{
		ID: 521, Name: "sandbox-cp-1", Node: "pve", Address: netip.MustParsePrefix("192.168.77.211/24"),
		Gateway: netip.MustParseAddr("192.168.77.1"), Cores: 4, MemoryMiB: 8192, MAC: told.MAC, UUID: told.UUID,
		DNS:  []netip.Addr{netip.MustParseAddr("192.168.77.1"), netip.MustParseAddr("9.9.9.9")},
		Tags: []string{"castle", "sandbox"}, Disks: []Disk{{Interface: "scsi0", Volume: "local-lvm:vm-521-disk-0", Bytes: 40 * gib}},
	}
	if fmt.Sprintf("%+v", told) != fmt.Sprintf("%+v", want) {
		t.Errorf("the machine is\n%+v, want\n%+v", told, want)
	}
	if template := w.vm(t, 900).VirtualMachineConfig.SMBios1; len(told.UUID) != 36 || template == "" || strings.Contains(template, told.UUID) {
		t.Errorf("the clone's UUID %q should be its own, the template's is %q", told.UUID, template)
	}
	if template := w.vm(t, 900).VirtualMachineConfig.Nets["net0"]; told.MAC == "" || strings.Contains(template, told.MAC) {
		t.Errorf("the clone's MAC %q should be its own, the template's device is %q", told.MAC, template)
	}

	interfaces, err := vm.AgentGetNetworkIFaces(ctx)
	if err != nil || len(interfaces) != 1 || interfaces[0].IPAddresses[0].IPAddress != "192.168.77.211" {
		t.Errorf("the agent tells %+v, %v", interfaces, err)
	}
	if vm = w.vm(t, 521); !vm.IsRunning() || vm.MaxDisk != uint64(40*gib) || vm.MaxMem != 8<<30 || vm.CPUs != 4 || bool(vm.Template) {
		t.Errorf("the status is %+v", vm)
	}
	if config := vm.VirtualMachineConfig; config.SCSIs["scsi0"] != "local-lvm:vm-521-disk-0,size=40G" || !bool(config.OnBoot) ||
		config.IDEs["ide2"] != "local-lvm:vm-521-cloudinit,media=cdrom,size=4M" {
		t.Errorf("the configuration is %+v", config)
	}

	_, err = vm.Delete(ctx, nil)
	wantError(t, err, "500 VM 521 is running - destroy failed")
	stop, err := vm.Stop(ctx)
	done(t, stop, err)
	w.machines.waitFor(t, "off")
	remove, err := vm.Delete(ctx, &api.VirtualMachineDeleteOptions{Purge: true, DestroyUnreferencedDisks: true})
	done(t, remove, err)
	w.machines.waitFor(t, "removed")
	wantError(t, vm.Ping(ctx), "500 Configuration file 'nodes/pve/qemu-server/521.conf' does not exist")
	_, body := w.raw(t, "GET", "/api2/json/nodes/pve/storage/local-lvm/content", tokenID+"="+tokenSecret)
	if strings.Contains(body, "521") || !strings.Contains(body, "base-900-disk-0") {
		t.Errorf("the storage should hold the template's disk only: %s", body)
	}
}

func TestAnIDIsTakenOnce(t *testing.T) {
	w := newWorld(t, nil)
	cluster, err := w.client.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := cluster.NextID(t.Context()); err != nil || id != 100 {
		t.Errorf("the next id is %d, %v", id, err)
	}
	w.mustClone(t, 100, "first")
	if id, err := cluster.NextID(t.Context()); err != nil || id != 101 {
		t.Errorf("the next id after 100 is %d, %v", id, err)
	}
	for id, free := range map[int]bool{100: false, 101: true} {
		if got, err := cluster.CheckID(t.Context(), id); err != nil || got != free {
			t.Errorf("id %d is free: %v, %v", id, got, err)
		}
	}
	_, err = w.cloneTask(t.Context(), t, 100, "second")
	wantError(t, err, "500 VM 100 already exists on node 'pve'")
	if name := w.vm(t, 100).Name; name != "first" {
		t.Errorf("VM 100 is %q now", name)
	}
}

func TestALockedTemplateIsNotCloned(t *testing.T) {
	w := newWorld(t, nil)
	locked := template
	locked.ID, locked.Config = 901, map[string]string{"lock": "backup"}
	if err := w.Seed(locked); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.vm(t, 901).Clone(t.Context(), &api.VirtualMachineCloneOptions{NewID: 521})
	wantError(t, err, "500 VM is locked (backup)")
	if err := w.Unlock(901); err != nil {
		t.Fatal(err)
	}
	_, task, err := w.vm(t, 901).Clone(t.Context(), &api.VirtualMachineCloneOptions{NewID: 521})
	done(t, task, err)
}

func TestAVMIsLockedWhileItIsCloned(t *testing.T) {
	w := newWorld(t, nil)
	var others []func()
	for range clonesAtOnce {
		release, _ := w.clonings.try(900)
		others = append(others, release)
	}
	task, err := w.cloneTask(t.Context(), t, 521, "cp")
	if err != nil {
		t.Fatal(err)
	}
	vm := w.vm(t, 521)
	if vm.Lock != "clone" || vm.VirtualMachineConfig.Lock != "clone" {
		t.Errorf("the locks are %q and %q", vm.Lock, vm.VirtualMachineConfig.Lock)
	}
	_, err = vm.Config(t.Context(), option("cores", 8))
	wantError(t, err, "500 VM is locked (clone)")
	start, err := vm.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, start); exit != "VM is locked (clone)" {
		t.Errorf("the start ended with %q", exit)
	}
	for _, release := range others {
		release()
	}
	done(t, task, nil)
	if vm := w.vm(t, 521); vm.Lock != "" || vm.Name != "cp" {
		t.Errorf("after the clone: lock %q, name %q", vm.Lock, vm.Name)
	}
}

func TestTwoClonesOfATemplateRunAtATime(t *testing.T) {
	const clone = 200 * time.Millisecond
	w := newWorld(t, slow(profile.Delays{VMClone: clone}, nil))
	begin := time.Now()
	var tasks []*api.Task
	for id := 521; id <= 525; id++ {
		task, err := w.cloneTask(t.Context(), t, id, fmt.Sprint("node-", id))
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		done(t, task, nil)
	}
	if took := time.Since(begin); took < 3*clone {
		t.Errorf("five clones took %v, less than three rounds of %v", took, clone)
	}
	waited := 0
	for _, task := range tasks {
		log, err := task.Log(t.Context(), 0, 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range log {
			if line == "trying to acquire lock..." {
				waited++
			}
		}
	}
	if waited != 3 {
		t.Errorf("%d clones waited for the template, want 3", waited)
	}
}

func TestAFailingTaskShowsItsMessage(t *testing.T) {
	w := newWorld(t, slow(profile.Delays{}, profile.Faults{profile.CloneFails: "523"}))
	w.mustClone(t, 522, "good")
	task, err := w.cloneTask(t.Context(), t, 523, "bad")
	if err != nil {
		t.Fatal(err)
	}
	const message = "clone failed: lvcreate 'pve/vm-523-disk-0' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold."
	if exit := wait(t, task); exit != message || !task.IsFailed {
		t.Errorf("the task ended with %q, failed: %v", exit, task.IsFailed)
	}
	log, err := task.Log(t.Context(), 0, 50)
	if err != nil || log[len(log)-1] != "TASK ERROR: "+message {
		t.Errorf("the log is %v, %v", log, err)
	}
	cluster, _ := w.client.Cluster(t.Context())
	if free, err := cluster.CheckID(t.Context(), 523); err != nil || !free {
		t.Errorf("the failed clone's id is free: %v, %v", free, err)
	}
}

func TestTheHostIsInItsMoodsForSomeRequests(t *testing.T) {
	w := newWorld(t, slow(profile.Delays{}, profile.Faults{profile.ProxmoxMoods: "2"}))
	for range 2 {
		_, err := w.cloneTask(t.Context(), t, 521, "cp")
		wantError(t, err, "500 can't lock file '/var/lock/qemu-server/lock-900.conf' - got timeout")
	}
	w.mustClone(t, 521, "cp")
}

func TestAStoragesLockIsNotToBeHadForSomeDisks(t *testing.T) {
	for shared, want := range map[bool]string{
		false: "can't lock file '/var/lock/pve-manager/pve-storage-disks' - got timeout",
		true:  "cfs-lock 'storage-disks' error: got lock request timeout",
	} {
		w := newWorld(t, func(o *Options) {
			slow(profile.Delays{}, profile.Faults{profile.StorageLock: "2"})(o)
			o.Storages = []Storage{{ID: "disks", Type: "lvmthin", Content: "images", Bytes: 1 << 40, Shared: shared}}
		})
		task, err := w.cloneTask(t.Context(), t, 521, "cp")
		if err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, task); exit != "clone failed: "+want {
			t.Errorf("the clone ended with %q", exit)
		}
		if err := w.Seed(Guest{VM: VM{ID: 530, Name: "old"}}); err != nil {
			t.Fatal(err)
		}
		const set = "/api2/json/nodes/pve/qemu/530/config?"
		if status, _ := w.raw(t, "PUT", set+"cores=2", tokenID+"="+tokenSecret); status != "200 OK" {
			t.Errorf("a change that makes no disk: %s", status)
		}
		if status, _ := w.raw(t, "PUT", set+"ide2=disks:cloudinit", tokenID+"="+tokenSecret); status != "500 "+want {
			t.Errorf("the cloud-init drive: %s", status)
		}
		w.mustClone(t, 521, "cp")
	}
}

func TestAPowerCutInTheMiddleOfACloneLeavesALockedVM(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxmox.json")
	w := newWorld(t, func(o *Options) {
		slow(profile.Delays{VMClone: time.Hour}, nil)(o)
		o.File = file
	})
	running := Guest{VM: VM{ID: 530, Name: "old"}, Running: true}
	if err := w.Seed(running); err != nil {
		t.Fatal(err)
	}
	task, err := w.cloneTask(t.Context(), t, 521, "cp")
	if err != nil {
		t.Fatal(err)
	}
	w.end()

	w = newWorld(t, func(o *Options) { o.File = file })
	w.Resume()
	w.machines.waitFor(t, "on old")
	task = api.NewTask(task.UPID, w.client)
	if exit := wait(t, task); exit != exitUnexpected || !task.IsFailed {
		t.Errorf("the task ended with %q", exit)
	}
	vm := w.vm(t, 521)
	if vm.Lock != "clone" {
		t.Errorf("the lock is %q", vm.Lock)
	}
	_, err = vm.Delete(t.Context(), nil)
	wantError(t, err, "VM is locked (clone)")
	if err := w.Unlock(521); err != nil {
		t.Fatal(err)
	}
	remove, err := vm.Delete(t.Context(), nil)
	done(t, remove, err)
	w.mustClone(t, 521, "cp")
	if !w.vm(t, 530).IsRunning() {
		t.Error("VM 530 does not run any more")
	}
	again, err := w.vm(t, 521).Start(t.Context())
	done(t, again, err)
	if again.UPID == task.UPID {
		t.Errorf("two tasks are %s", task.UPID)
	}
}

func TestTheStateIsWholeAtAnyTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxmox.json")
	w := newWorld(t, func(o *Options) { o.File = file })
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if _, err := load(file); err != nil {
				ended <- err
				return
			}
		}
	}()
	for id := 521; id < 530; id++ {
		w.mustClone(t, id, fmt.Sprint("node-", id))
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("beside the state there are %v, %v", entries, err)
	}
}

func TestAWrongTokenIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	for token, status := range map[string]string{
		tokenID + "=" + tokenSecret:       "200 OK",
		tokenID + "=another":              "401 invalid token value!",
		"castle@pve!other=" + tokenSecret: "401 no such token 'other' for user 'castle@pve'",
		"":                                "401 No ticket",
	} {
		got, body := w.raw(t, "GET", "/api2/json/version", token)
		if got != status || strings.Contains(body, "another") || status[0] == '4' && strings.Contains(body, tokenSecret) {
			t.Errorf("token %q: got %q and %s, want %q", token, got, body, status)
		}
	}
	_, err := w.newClient(api.WithAPIToken(tokenID, "wrong")).Version(t.Context())
	if !api.IsNotAuthorized(err) {
		t.Errorf("got %v", err)
	}
}

func TestTagsComeBackSortedAndOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.mustClone(t, 521, "cp")
	for _, tag := range []string{"talos", "Castle", "blue"} {
		task, err := w.vm(t, 521).AddTag(t.Context(), tag)
		done(t, task, err)
	}
	vm := w.vm(t, 521)
	if tags := vm.VirtualMachineConfig.TagsSlice; !slices.Equal(tags, []string{"blue", "castle", "talos"}) || vm.Tags != "blue;castle;talos" {
		t.Errorf("the tags are %q and %q", tags, vm.Tags)
	}
	task, err := vm.RemoveTag(t.Context(), "castle")
	done(t, task, err)
	if vm := w.vm(t, 521); vm.HasTag("castle") || !vm.HasTag("blue") {
		t.Errorf("the tags are %q", vm.Tags)
	}
	_, err = vm.Config(t.Context(), option("tags", "a b?"))
	wantError(t, err, `400 Parameter verification failed. - {"tags":"invalid format - invalid characters in tag\n"}`)
}

func TestTheClusterListsWhatIsThere(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.configured(t, 521, "sandbox-cp-1", "192.168.77.211/24", map[string]any{"tags": "castle"})
	cluster, err := w.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := cluster.Resources(ctx, "vm")
	if err != nil || len(resources) != 2 {
		t.Fatalf("got %v, %v", resources, err)
	}
	vm := resources[0]
	if vm.VMID != 521 || vm.Name != "sandbox-cp-1" || vm.Node != "pve" || vm.Tags != "castle" || vm.Template != 0 || vm.Status != "stopped" {
		t.Errorf("the VM is %+v", vm)
	}
	if resources[1].VMID != 900 || resources[1].Template != 1 {
		t.Errorf("the template is %+v", resources[1])
	}
	all, err := cluster.Resources(ctx)
	if err != nil || len(all) != 2+1+2 {
		t.Errorf("got %d resources, %v", len(all), err)
	}
	nodes, err := w.client.Nodes(ctx)
	if err != nil || len(nodes) != 1 || nodes[0].Status != "online" {
		t.Errorf("the nodes are %+v, %v", nodes, err)
	}
	node, err := w.client.Node(ctx, "pve")
	if err != nil || node.CPUInfo.CPUs != nodeCPUs {
		t.Errorf("the node is %+v, %v", node, err)
	}
	list, err := node.VirtualMachines(ctx)
	if err != nil || len(list) != 2 || bool(list[0].Template) || !bool(list[1].Template) {
		t.Errorf("the node's VMs are %+v, %v", list, err)
	}
	if tasks, err := cluster.Tasks(ctx); err != nil || len(tasks) != 2 || tasks[1].Type != "qmclone" || tasks[1].ID != "900" || tasks[1].User != "castle@pve" {
		t.Errorf("the tasks are %+v, %v", tasks, err)
	}
}

func TestMistakesAreNamedAsProxmoxNamesThem(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Nodes = []Node{{Name: "pve"}, {Name: "pve2"}, {Name: "dark", Offline: true}}
	})
	w.mustClone(t, 521, "cp")
	token := tokenID + "=" + tokenSecret
	const vm = "/api2/json/nodes/pve/qemu/521"
	for call, want := range map[string]string{
		"GET /api2/json/nodes/pve/qemu/522/config":                                                "500 Configuration file 'nodes/pve/qemu-server/522.conf' does not exist",
		"GET /api2/json/nodes/pve2/qemu/521/config":                                               "500 Configuration file 'nodes/pve2/qemu-server/521.conf' does not exist",
		"POST /api2/json/nodes/pve2/qemu/900/clone?newid=523":                                     "500 unable to find configuration file for VM 900 on node 'pve2'",
		"POST /api2/json/nodes/pve/qemu/900/clone?newid=523&target=pve2":                          "500 can't clone VM to node 'pve2' (VM uses local storage)",
		"POST /api2/json/nodes/pve/qemu/900/clone?newid=523&target=pve2&full=1&storage=local-lvm": "500 can't clone to non-shared storage 'local-lvm'",
		"GET /api2/json/nodes/nowhere/status":                                                     "500 hostname lookup 'nowhere' failed - failed to get address info for: nowhere: Name or service not known",
		"GET /api2/json/nodes/dark/qemu":                                                          "596 Connection timed out",
		"PUT " + vm + "/config?cores=many":                                                        "400 Parameter verification failed.",
		"PUT " + vm + "/config?colour=red":                                                        "400 Parameter verification failed.",
		"PUT " + vm + "/config?delete=cores&cores=2":                                              "400 Parameter verification failed.",
		"PUT " + vm + "/config?scsi1=nowhere:10":                                                  "500 storage 'nowhere' does not exist",
		"PUT " + vm + "/config?scsi1=local-lvm:vm-1-disk-0":                                       "500 volume 'local-lvm:vm-1-disk-0' does not exist",
		"PUT " + vm + "/resize?disk=scsi0&size=1G":                                                "500 shrinking disks is not supported",
		"PUT " + vm + "/resize?disk=scsi3&size=1G":                                                "500 disk 'scsi3' does not exist",
		"GET " + vm + "/agent/network-get-interfaces":                                             "500 No QEMU guest agent configured",
		"GET /api2/json/nodes/pve/tasks/nonsense/status":                                          "400 Parameter verification failed.",
		"GET /api2/json/nothing":                                                                  "501 Method 'GET /nothing' not implemented",
		"POST /api2/json/nodes/pve/qemu?vmid=521":                                                 "500 unable to create VM 521 - VM 521 already exists on node 'pve'",
	} {
		method, path, _ := strings.Cut(call, " ")
		if got, body := w.raw(t, method, path, token); got != want {
			t.Errorf("%s: got %q, want %q\n%s", call, got, want, body)
		}
	}
	if disk := w.vm(t, 521).VirtualMachineConfig.SCSIs["scsi1"]; disk != "" {
		t.Errorf("a refused change has left scsi1 %q", disk)
	}
}

func TestAnAgentAnswersOnceItRuns(t *testing.T) {
	w := newWorld(t, nil)
	vm := w.configured(t, 521, "cp", "192.168.77.211/24", nil)
	_, err := vm.AgentGetNetworkIFaces(t.Context())
	wantError(t, err, "500 VM 521 is not running")
	start, err := vm.Start(t.Context())
	done(t, start, err)
	w.machines.waitFor(t, "on cp")
	w.machines.note("the agent stops", func() { delete(w.machines.on, 521) })
	_, err = vm.AgentGetNetworkIFaces(t.Context())
	wantError(t, err, "500 QEMU guest agent is not running")
}

func TestAStartFailsWithoutItsBridge(t *testing.T) {
	w := newWorld(t, nil)
	vm := w.configured(t, 521, "cp", "192.168.77.211/24", map[string]any{"net0": "model=virtio,bridge=vmbr7"})
	start, err := vm.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, start); exit != "bridge 'vmbr7' does not exist" {
		t.Errorf("the start ended with %q", exit)
	}
	if _, on := w.machines.vm(521); on || w.vm(t, 521).IsRunning() {
		t.Error("the VM runs")
	}
}

func TestARebootTakesPowerAwayAndGivesItBack(t *testing.T) {
	w := newWorld(t, nil)
	vm := w.configured(t, 521, "cp", "192.168.77.211/24", nil)
	start, err := vm.Start(t.Context())
	done(t, start, err)
	done(t, func() *api.Task { task, _ := vm.Config(t.Context(), option("cores", 6)); return task }(), nil)
	reboot, err := vm.Reboot(t.Context())
	done(t, reboot, err)
	w.machines.waitFor(t, "on cp")
	if events := w.machines.events; !slices.Equal(events, []string{"on cp", "off", "on cp"}) {
		t.Errorf("the machine was told %q", events)
	}
	if vm, _ := w.machines.vm(521); vm.Cores != 6 {
		t.Errorf("after the reboot the machine has %d cores", vm.Cores)
	}
	if starts := w.state.Guests[521].Starts; starts != 2 {
		t.Errorf("it was given power %d times", starts)
	}
}

func TestASeededVMGetsPowerOnce(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.Seed(Guest{VM: VM{ID: 530, Name: "nas"}, Running: true}); err != nil {
		t.Fatal(err)
	}
	w.Resume()
	w.end() // all events are delivered then
	if events := w.machines.events; !slices.Equal(events, []string{"on nas"}) {
		t.Errorf("the machine was told %q", events)
	}
}

func TestAStoppedTaskOfACloneLeavesNothing(t *testing.T) {
	w := newWorld(t, slow(profile.Delays{VMClone: time.Hour}, nil))
	task, err := w.cloneTask(t.Context(), t, 521, "cp")
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, task); exit != exitInterrupted {
		t.Errorf("the task ended with %q", exit)
	}
	cluster, _ := w.client.Cluster(t.Context())
	if free, err := cluster.CheckID(t.Context(), 521); err != nil || !free {
		t.Errorf("id 521 is free: %v, %v", free, err)
	}
}
