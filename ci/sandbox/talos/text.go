package talos

import (
	"encoding/base64"
	"fmt"
)

func base64PEM(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// actor is the id of a call that changes the machine.
func actor() string { return fmt.Sprintf("%016x", random()) }
