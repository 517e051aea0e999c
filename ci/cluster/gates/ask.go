package gates

import (
	"context"
	"time"
)

// askEvery is the pace at which things are asked that cannot be watched.
const askEvery = 100 * time.Millisecond

// asking is a question that is put again and again until its answer is yes.
type asking struct {
	every   time.Duration // between the starts of two tries
	limit   time.Duration // for one try
	atOnce  int           // tries in flight: more than one, so that a try that hangs delays no later one
	grace   time.Duration // see patience
	starter <-chan struct{}
}

// answer is the outcome of one try.
type answer struct {
	seen string
	ok   bool
	err  error // judged by patience
	// fatal ends the wait.
	fatal error
}

// ask puts a question until a try is ok. The first try is made at once; starter, where there is one, has tries made
// ahead of their time.
func (a asking) ask(ctx context.Context, try func(context.Context) answer, report func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := patience{grace: a.grace}
	answers := make(chan answer, a.atOnce)
	free := a.atOnce
	start := func() {
		if free == 0 {
			return
		}
		free--
		go func() {
			bounded, cancel := context.WithTimeout(ctx, a.limit)
			defer cancel()
			answers <- try(bounded)
		}()
	}
	ticker := time.NewTicker(a.every)
	defer ticker.Stop()
	start()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			start()
		case <-a.starter:
			start()
		case answer := <-answers:
			if ctx.Err() != nil { // the end of the wait is not what was seen
				return ctx.Err()
			}
			free++
			if answer.fatal == nil {
				answer.fatal = patience.judge(answer.err)
			}
			if answer.fatal != nil {
				return answer.fatal
			}
			if answer.seen != "" {
				report(answer.seen)
			}
			if answer.ok {
				return nil
			}
		}
	}
}
