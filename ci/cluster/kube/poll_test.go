package kube

import (
	"context"
	"testing"
	"time"
)

func TestAQuestionThatHangsDelaysNoOther(t *testing.T) {
	question := Poll{Every: 20 * time.Millisecond, Limit: time.Minute, AtOnce: 3}
	started := time.Now()
	answered := make(chan int, 3)
	err := question.Until(t.Context(), func(ctx context.Context) Answer {
		answered <- 1
		if len(answered) < 3 {
			<-ctx.Done()
			return Answer{Err: ctx.Err()}
		}
		return Answer{OK: true}
	}, func(string) {})
	if took := time.Since(started); err != nil || took > 30*time.Second {
		t.Errorf("answered after %s, %v", took, err)
	}
}
