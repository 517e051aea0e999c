package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/google/renameio/v2"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state/objects"
)

// The files of a cluster's states are kept as OpenTofu wrote them, encrypted: none is ever opened here to be copied or moved. They
// are known by names relative to the cluster, such as platform/terraform.tfstate.

// vault is where those files are.
type vault interface {
	// get reads a file, and its version for put; ErrNotExist of fs where there is none.
	get(ctx context.Context, name string) (data []byte, version string, err error)
	// put writes a file whose version is still the given one, "" for none.
	put(ctx context.Context, name string, data []byte, version string) error
	// delete removes a file whose version is still the given one, "" for any; it is not an error if there is none.
	delete(ctx context.Context, name, version string) error
	// list gives the names of the files in a folder, sorted.
	list(ctx context.Context, folder string) ([]string, error)
}

// nameOf is a layer's state in its vault.
func nameOf(layer string) string { return path.Join(layer, file) }

// bucketVault keeps the files in S3.
type bucketVault struct {
	*objects.Bucket
	prefix string // the cluster's name
}

func (v bucketVault) get(ctx context.Context, name string) ([]byte, string, error) {
	object, err := v.Get(ctx, path.Join(v.prefix, name))
	if errors.Is(err, objects.ErrNotExist) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return object.Data, object.Version, err
}

func (v bucketVault) put(ctx context.Context, name string, data []byte, version string) error {
	return v.Put(ctx, path.Join(v.prefix, name), data, version)
}

func (v bucketVault) delete(ctx context.Context, name, version string) error {
	return v.Delete(ctx, path.Join(v.prefix, name), version)
}

func (v bucketVault) list(ctx context.Context, folder string) ([]string, error) {
	keys, err := v.List(ctx, path.Join(v.prefix, folder)+"/")
	for i, key := range keys {
		keys[i] = path.Join(folder, path.Base(key))
	}
	return keys, err
}

// folderVault keeps the files in a folder of this machine, where the cluster's lock lets one run at a time write; so a version says no
// more than that there is one.
type folderVault string

func (v folderVault) file(name string) string {
	return filepath.Join(string(v), filepath.FromSlash(name))
}

func (v folderVault) get(_ context.Context, name string) ([]byte, string, error) {
	data, err := os.ReadFile(v.file(name))
	return data, "there", err
}

func (v folderVault) put(_ context.Context, name string, data []byte, _ string) error {
	if err := os.MkdirAll(filepath.Dir(v.file(name)), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(v.file(name), data, 0o600)
}

func (v folderVault) delete(_ context.Context, name, _ string) error {
	if err := os.Remove(v.file(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (v folderVault) list(_ context.Context, folder string) ([]string, error) {
	entries, err := os.ReadDir(v.file(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, path.Join(folder, entry.Name()))
	}
	return names, err
}

// Bucket is the store of a cluster whose states are in S3, nil for any other.
func Bucket(cluster *config.Cluster, accessKey, secretKey string) *objects.Bucket {
	if cluster.State.Backend != config.StateS3 {
		return nil
	}
	s3 := cluster.State.S3
	return objects.Open(objects.Address{Bucket: s3.Bucket, Region: s3.Region, Endpoint: s3.Endpoint, AccessKey: accessKey, SecretKey: secretKey})
}

func (s Store) vault() vault {
	if s.Bucket == nil {
		return folderVault(s.Folder)
	}
	return bucketVault{s.Bucket, s.Cluster.Name}
}
