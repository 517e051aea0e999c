package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"tazlab.net/castle/ci/publish/report"
)

// handoverPause is the time between two looks for a result.
const handoverPause = 20 * time.Millisecond

// handedOver waits for the result that castle-publish writes to a file, as a whole, and removes it.
func handedOver(ctx context.Context, file string) (result report.Result, err error) {
	data, err := os.ReadFile(file)
	for errors.Is(err, fs.ErrNotExist) {
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(handoverPause):
		}
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return result, fmt.Errorf("read what was published: %w", err)
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return result, fmt.Errorf("%s is not what castle-publish writes with --result: %w", file, err)
	}
	return result, os.Remove(file)
}
