package devstack

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// scramIterations is how often a client hashes the password at each login with FastLogin.
// PostgreSQL's own verifiers have 4,096 iterations, which make a stolen verifier useless to somebody
// who guesses. Nobody guesses the random password of a cluster. These iterations are most of what a
// connection costs a test: 1 ms of processor time, and 11 ms with the race detector.
const scramIterations = 1

// scramVerifier returns a password in the form in which PostgreSQL stores it (RFC 5803).
func scramVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	encode := base64.StdEncoding.EncodeToString
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		scramIterations, encode(salt), encode(stored[:]), encode(keyed(salted, "Server Key"))), nil
}

// keyed returns the HMAC of text.
func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // never fails
	return mac.Sum(nil)
}
