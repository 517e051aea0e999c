// Package objects reads and writes whole objects of one bucket of an S3-compatible store, each write under a condition: states
// and locks are written by several machines, and the one that comes second has to know it.
package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

var (
	// ErrNotExist says that there is no such object.
	ErrNotExist = errors.New("there is no such object")
	// ErrChanged says that the condition of a write did not hold: somebody else was first.
	ErrChanged = errors.New("somebody else has written it meanwhile")
)

// longest is more than any object that castle reads: a layer's state is some hundred kilobytes.
const longest = 256 << 20

// patience is how long one request may take, repetitions included.
const patience = 30 * time.Second

// Address is where a bucket is, and the keys to it.
type Address struct {
	Bucket    string
	Region    string // of AWS
	Endpoint  string // of any other store
	AccessKey string
	SecretKey string
}

// Bucket is a bucket of a store.
type Bucket struct {
	client *s3.Client
	at     Address
}

// Open makes a client; nothing is asked yet.
func Open(at Address) *Bucket {
	options := s3.Options{
		// Stores other than AWS have no regions, and a signature needs one.
		Region:      cmp.Or(at.Region, "us-east-1"),
		Credentials: credentials.NewStaticCredentialsProvider(at.AccessKey, at.SecretKey, ""),
		// Not every store knows the checksums that the SDK would add by itself.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if at.Endpoint != "" {
		options.BaseEndpoint, options.UsePathStyle = aws.String(at.Endpoint), true
	}
	return &Bucket{client: s3.New(options), at: at}
}

// Object is what an object holds, and the version by which a write can be made conditional.
type Object struct {
	Data    []byte
	Version string // its ETag
}

// Get reads an object; ErrNotExist where there is none.
func (b *Bucket) Get(ctx context.Context, key string) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.at.Bucket, Key: &key})
	if err != nil {
		return Object{}, b.explain("read", key, err)
	}
	defer out.Body.Close()
	data, err := io.ReadAll(io.LimitReader(out.Body, longest+1))
	if err != nil {
		return Object{}, b.explain("read", key, err)
	}
	if len(data) > longest {
		return Object{}, fmt.Errorf("%s: larger than %d MiB", b.name(key), longest>>20)
	}
	return Object{Data: data, Version: aws.ToString(out.ETag)}, nil
}

// Put writes an object where its version is still the given one, "" for none; else ErrChanged. An object that is as it should become has been written:
// a write whose answer was lost is sent again, and meets what it wrote at first.
func (b *Bucket) Put(ctx context.Context, key string, data []byte, version string) error {
	err := b.put(ctx, key, data, version)
	if !errors.Is(err, ErrChanged) {
		return err
	}
	if now, readErr := b.Get(ctx, key); readErr == nil && bytes.Equal(now.Data, data) {
		return nil
	}
	return err
}

func (b *Bucket) put(ctx context.Context, key string, data []byte, version string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in := &s3.PutObjectInput{Bucket: &b.at.Bucket, Key: &key, Body: bytes.NewReader(data)}
	if version == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &version
	}
	_, err := b.client.PutObject(ctx, in)
	if err = b.explain("write", key, err); version != "" && errors.Is(err, ErrNotExist) {
		// AWS answers 404 to a write under If-Match whose object was removed meanwhile.
		// Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html.
		return fmt.Errorf("write %s: %w", b.name(key), ErrChanged)
	}
	return err
}

// Delete removes an object whose version is still the given one, else ErrChanged; it is not an error if there is
// none. A version of "" removes the object as it is.
//
// AWS compares the version in the same step
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html), and many other stores ignore
// the condition or refuse it. So the version is compared here first, which leaves those stores a gap of one
// request's time. The version's own id is not used: in a bucket with versioning that would bring back the one
// before it.
func (b *Bucket) Delete(ctx context.Context, key, version string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in := &s3.DeleteObjectInput{Bucket: &b.at.Bucket, Key: &key}
	if version != "" {
		switch now, err := b.Get(ctx, key); {
		case errors.Is(err, ErrNotExist):
			return nil
		case err != nil:
			return err
		case now.Version != version:
			return fmt.Errorf("remove %s: %w", b.name(key), ErrChanged)
		}
		in.IfMatch = &version
	}
	_, err := b.client.DeleteObject(ctx, in)
	if version != "" && statusOf(err) == http.StatusNotImplemented {
		in.IfMatch = nil
		_, err = b.client.DeleteObject(ctx, in)
	}
	if err = b.explain("remove", key, err); errors.Is(err, ErrNotExist) {
		return nil
	}
	return err
}

// List gives the keys that begin with a prefix, sorted.
func (b *Bucket) List(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var keys []string
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.at.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.explain("list", prefix, err)
		}
		for _, object := range page.Contents {
			keys = append(keys, aws.ToString(object.Key))
		}
	}
	return keys, nil
}

// noVersion is the ETag of no object that castle writes.
const noVersion = `"00000000000000000000000000000000"`

// CheckConditions makes sure that the store obeys both conditions of a write: that there is no object yet
// (If-None-Match), by which a lock is taken, and that it is still the one that was read (If-Match), by which a
// lock is taken over and a state is replaced. A store that ignores one would let two machines hold the same lock.
// key is an object that is there and has this data: a store that ignores a condition writes the same.
func (b *Bucket) CheckConditions(ctx context.Context, key string, data []byte) error {
	for _, condition := range []struct{ header, version string }{{"If-None-Match", ""}, {"If-Match", noVersion}} {
		switch err := b.put(ctx, key, data, condition.version); {
		case errors.Is(err, ErrChanged):
		case err != nil:
			return err
		default:
			return fmt.Errorf("the store of bucket %s overwrites an object that it was asked to leave alone (%s): "+
				"it cannot keep a lock; use a store with conditional writes", b.at.Bucket, condition.header)
		}
	}
	return nil
}

func (b *Bucket) name(key string) string { return "s3://" + b.at.Bucket + "/" + key }

// explain gives an error the words of the store, and makes of its answers those of this package.
func (b *Bucket) explain(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	code := statusOf(err)
	var answer smithy.APIError
	name := ""
	if errors.As(err, &answer) {
		name = answer.ErrorCode()
	}
	switch {
	case name == "NoSuchBucket":
		return fmt.Errorf("%s %s: there is no bucket %s", verb, b.name(key), b.at.Bucket)
	case code == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w", verb, b.name(key), ErrNotExist)
	case code == http.StatusPreconditionFailed, code == http.StatusConflict:
		return fmt.Errorf("%s %s: %w", verb, b.name(key), ErrChanged)
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return fmt.Errorf("%s %s: the store refuses the key AWS_ACCESS_KEY_ID (%s)", verb, b.name(key), name)
	}
	return fmt.Errorf("%s %s: %w", verb, b.name(key), err)
}

// statusOf is the status of the store's answer, 0 if there was none.
func statusOf(err error) int {
	var status interface{ HTTPStatusCode() int }
	if errors.As(err, &status) {
		return status.HTTPStatusCode()
	}
	return 0
}
