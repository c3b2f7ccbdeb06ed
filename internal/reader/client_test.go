package reader

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
)

// Account is the response of the projector. Stale means that a known event is not yet in the
// balance.
type Account struct {
	Version int64  `json:"version"`
	Stale   bool   `json:"stale"`
	Balance string `json:"balance"` // a string, because a float cannot represent money exactly
}

// accountAt reads an account when the event with the version is in it. It returns false after 5 s:
// the payment is booked, but the balance does not include it yet.
func accountAt(ctx context.Context, base, token, id string, version int64) (a Account, current bool, err error) {
	address := fmt.Sprintf("%s/v1/accounts/%s?min_version=%d&wait=5s", base, url.PathEscape(id), version)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return a, false, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, false, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(answer.Body).Decode(&a)
		return a, err == nil, err
	case http.StatusAccepted, http.StatusNotFound:
		return a, false, nil
	default:
		return a, false, fmt.Errorf("the projector answers %s", answer.Status)
	}
}

// TestClientOfTheDocuments shows that the client above works, and that docs/read-model.md links to
// this file.
func TestClientOfTheDocuments(t *testing.T) {
	s := newServer(t, bank(), "secret", true)
	server := httptest.NewServer(s.HTTP.Handler)
	defer server.Close()
	a, current, err := accountAt(t.Context(), server.URL, "secret", "a", 5)
	if want := (Account{Version: 5, Balance: "10.50"}); a != want || !current || err != nil {
		t.Errorf("%+v %t %v", a, current, err)
	}
	if _, current, err = accountAt(t.Context(), server.URL, "secret", "stale", 4); current || err != nil {
		t.Errorf("of a version that is not there: %t %v", current, err)
	}
	if _, _, err = accountAt(t.Context(), server.URL, "wrong", "a", 5); err == nil {
		t.Error("without the token there is no error")
	}

	page, err := os.ReadFile("../../docs/read-model.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "(../internal/reader/client_test.go)") {
		t.Error("docs/read-model.md does not link to the client")
	}
}
