package proxmox

import (
	"context"
	"slices"
	"time"
)

// storageLockTimeout is how long a host waits for a storage's lock: cluster_lock_storage of pve-storage 8.3.6, src/PVE/Storage/Plugin.pm,
// names none, and both kinds of lock take ten seconds then.
const storageLockTimeout = 10 * time.Second

// storageLock takes the lock of a storage, as vdisk_alloc of pve-storage 8.3.6 (src/PVE/Storage.pm) does around each volume that it makes.
// Nobody here holds it for longer than a moment, but for the fault. A storage's of the host's own is a file (lock_file_full of pve-common
// 8.3.1, src/PVE/Tools.pm), a shared one's stands in the cluster's file system (cfs_lock_storage of pve-cluster, src/PVE/Cluster.pm).
func (s *Server) storageLock(ctx context.Context, id string) error {
	s.mu.Lock()
	held := s.locks > 0
	if held {
		s.locks--
	}
	s.mu.Unlock()
	if !held {
		return nil
	}
	refused, err := s.notToBeHad(ctx, id)
	if err != nil {
		return err
	}
	return refused
}

// notToBeHad waits for a storage's lock in vain, and returns what the host says then.
func (s *Server) notToBeHad(ctx context.Context, id string) (refused, err error) {
	storage, err := s.storage(id)
	if err != nil {
		return nil, err
	}
	if err := s.profile.Sleep(ctx, storageLockTimeout); err != nil {
		return nil, err
	}
	if storage.Shared {
		return internal("cfs-lock 'storage-%s' error: got lock request timeout", id), nil
	}
	return internal("can't lock file '/var/lock/pve-manager/pve-storage-%s' - got timeout", id), nil
}

// made are the storages of the volumes that a change makes; s.mu is held.
func (s *Server) made(e edit) (storages []string) {
	for id := range e.volumes {
		if _, there := s.state.Volumes[id]; !there {
			storages = append(storages, parseDrive(id).storage())
		}
	}
	slices.Sort(storages)
	return storages
}
