package redact

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact/redacttest"
)

func TestAWriterKnowsWhatTheProcessLearns(t *testing.T) {
	var out strings.Builder
	to := Writer(&out)
	Add("learned early")
	if n, err := fmt.Fprintf(to, "x %q ", "learned early"); n != len(`x "learned early" `) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	Add(redacttest.Token)
	fmt.Fprint(to, redacttest.Token)
	if got := out.String(); got != `x "`+Mark+`" `+Mark || Text(redacttest.Token) != Mark {
		t.Errorf("got %s", got)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAWriterTellsOfWhatCouldNotBeWritten(t *testing.T) {
	if n, err := Writer(full{}).Write([]byte("text")); n != 0 || err == nil {
		t.Errorf("wrote %d, %v", n, err)
	}
}
