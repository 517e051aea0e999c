package kube

import (
	"context"
	"time"
)

// Poll is how something is asked that cannot be watched: again and again, until the answer is yes. Client.Poll makes one
// for questions to the API.
type Poll struct {
	Every  time.Duration // between the starts of two tries
	Limit  time.Duration // for one try
	AtOnce int           // tries in flight: more than one, so that a try that hangs delays no later one; 0 counts as 1
	Grace  time.Duration // how long errors about credentials may yet pass, see Client.Grace
	// Hurry, where there is one, has tries made ahead of their time.
	Hurry <-chan struct{}
}

// Answer is the outcome of one try.
type Answer struct {
	Seen string // what a person should know about it
	OK   bool
	// Err is why it could not be seen. It ends the wait where it shows that waiting longer cannot help.
	Err error
	// Fatal ends the wait.
	Fatal error
}

// Until puts a question until a try is OK. The first try is made at once. None is left when it returns, since a try may write to what whoever asked
// reads then.
func (p Poll) Until(ctx context.Context, try func(context.Context) Answer, report func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	patience := patience{grace: p.Grace}
	all := max(p.AtOnce, 1)
	free := all
	answers := make(chan Answer, all)
	defer func() {
		cancel()
		for ; free < all; free++ {
			<-answers
		}
	}()
	start := func() {
		if free == 0 {
			return
		}
		free--
		go func() {
			bounded, cancel := context.WithTimeout(ctx, p.Limit)
			defer cancel()
			answers <- try(bounded)
		}()
	}
	ticker := time.NewTicker(p.Every)
	defer ticker.Stop()
	start()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			start()
		case <-p.Hurry:
			start()
		case answer := <-answers:
			free++
			if ctx.Err() != nil { // the end of the wait is not what was seen
				return ctx.Err()
			}
			if answer.Fatal == nil {
				answer.Fatal = patience.judge(answer.Err)
			}
			if answer.Fatal != nil {
				return answer.Fatal
			}
			if answer.Seen != "" {
				report(answer.Seen)
			}
			if answer.OK {
				return nil
			}
		}
	}
}
