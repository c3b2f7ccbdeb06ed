package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// signingKey names the environment variable with the key that signs the checksums. The key is an
// Ed25519 key in the format of `openssl genpkey -algorithm ed25519` (PKCS #8, PEM).
const signingKey = "RELEASE_SIGNING_KEY"

// sign writes the signature of the checksums in folder, for `openssl pkeyutl -verify -rawin`.
// Without a key it prints that nothing is signed.
func sign(folder string, progress io.Writer) error {
	text := os.Getenv(signingKey)
	if text == "" {
		_, err := fmt.Fprintf(progress, "%s is not signed: %s is not set\n", sumsFile, signingKey)
		return err
	}
	key, err := parseKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w; it takes what `openssl genpkey -algorithm ed25519` prints", signingKey, err)
	}
	sums, err := os.ReadFile(filepath.Join(folder, sumsFile)) //nolint:gosec // G304: a folder of ours
	if err != nil {
		return err
	}
	return publish(filepath.Join(folder, sumsFile+".sig"), ed25519.Sign(key, sums))
}

// parseKey reads a private key. Its errors do not repeat the text, which is secret.
func parseKey(text string) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("not a PKCS #8 key")
	}
	key, isEd25519 := parsed.(ed25519.PrivateKey)
	if !isEd25519 {
		return nil, errors.New("not an Ed25519 key")
	}
	return key, nil
}
