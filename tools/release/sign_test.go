package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSign(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	sums := []byte("ca97  a\n")
	if err := os.WriteFile(filepath.Join(folder, sumsFile), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(signingKey, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
	if err := sign(folder, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(filepath.Join(folder, sumsFile+".sig"))
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(public, sums, signature) {
		t.Error("the signature is not that of the checksums")
	}
}

func TestSignWithoutAKey(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(signingKey, "")
	var progress bytes.Buffer
	if err := sign(folder, &progress); err != nil || !strings.Contains(progress.String(), "not signed") {
		t.Errorf("%v, %s", err, progress.String())
	}
	t.Setenv(signingKey, "hunter2")
	if err := sign(folder, &progress); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a key that is none: %v", err)
	}
}
