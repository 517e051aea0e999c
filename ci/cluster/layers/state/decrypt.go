package state

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// sealedState is a state as OpenTofu encrypts it with the key that castle gives. Source: OpenTofu v1.12,
// internal/encryption/state.go, keyprovider/pbkdf2 and method/aesgcm.
type sealedState struct {
	Meta map[string][]byte `json:"meta"` // by key provider
	Data []byte            `json:"encrypted_data"`
}

// derived is how a key was derived from castle's.
type derived struct {
	Salt       []byte `json:"salt"`
	Iterations int    `json:"iterations"`
	Hash       string `json:"hash_function"`
	Length     int    `json:"key_length"`
}

// keyProvider and mostIterations bound what is tried: a state could come from anybody who may write into the bucket.
const (
	keyProvider    = "key_provider.pbkdf2.castle"
	mostIterations = 10_000_000
)

// decrypt opens a state without OpenTofu, which nuclear-wipe does not run: whose it is has to be known there, too.
func decrypt(data []byte, key string) ([]byte, error) {
	var state sealedState
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, err
	}
	var how derived
	if err := json.Unmarshal(state.Meta[keyProvider], &how); err != nil {
		return nil, fmt.Errorf("it was not encrypted by castle's key provider: %w", err)
	}
	if key == "" || how.Hash != "sha256" || how.Length != 32 || how.Iterations < 1 || how.Iterations > mostIterations {
		return nil, errors.New("it was not encrypted as castle has it")
	}
	stretched, err := pbkdf2.Key(sha256.New, key, how.Salt, how.Iterations, how.Length)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(stretched)
	if err != nil {
		return nil, err
	}
	method, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	if len(state.Data) < method.NonceSize() {
		return nil, errors.New("it is cut off")
	}
	return method.Open(nil, state.Data[:method.NonceSize()], state.Data[method.NonceSize():], nil)
}
