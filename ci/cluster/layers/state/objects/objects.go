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
	return b.explain("write", key, err)
}

// Delete removes an object; that there is none is no error.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.at.Bucket, Key: &key})
	return b.explain("remove", key, err)
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

// CheckConditions makes sure that the store obeys the condition of a write. One that does not would let two machines hold the
// same lock. key is an object that is there; it is not changed where the store is as it has to be.
func (b *Bucket) CheckConditions(ctx context.Context, key string, data []byte) error {
	switch err := b.put(ctx, key, data, ""); {
	case errors.Is(err, ErrChanged):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the store of bucket %s overwrites an object that it was asked to leave alone (If-None-Match): it cannot keep a lock; "+
		"take a store with conditional writes", b.at.Bucket)
}

func (b *Bucket) name(key string) string { return "s3://" + b.at.Bucket + "/" + key }

// explain gives an error the words of the store, and makes of its answers those of this package.
func (b *Bucket) explain(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	var status interface{ HTTPStatusCode() int }
	code := 0
	if errors.As(err, &status) {
		code = status.HTTPStatusCode()
	}
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
