package devstack

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// KafkaSecurity opens two listeners by TLS, one that asks for a user by SASL and one
// that asks for a client certificate, and lets nobody do anything there without an
// ACL. The plain listener stays, for the administrator, who may do everything.
//
// SASL knows PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, whose users the administrator
// makes, and OAUTHBEARER with unsecured tokens (RFC 7515, "alg" none).
type KafkaSecurity struct {
	// Certificate is that of all brokers.
	Certificate Certificate
	// ClientCA is who may issue client certificates, PEM.
	ClientCA []byte
	// Users are names and passwords for PLAIN.
	Users map[string]string
}

// SASLAddrs are the addresses that ask for a user, as Addrs.
func (k *Kafka) SASLAddrs() []string { return k.addrs(func(n *kafkaNode) int { return n.saslPort }) }

// TLSAddrs are the addresses that ask for a client certificate, as Addrs.
func (k *Kafka) TLSAddrs() []string { return k.addrs(func(n *kafkaNode) int { return n.tlsPort }) }

func (k *Kafka) keystore() string   { return filepath.Join(k.dir, "keystore.pem") }
func (k *Kafka) truststore() string { return filepath.Join(k.dir, "truststore.pem") }

func (k *Kafka) writeKeystores() error {
	if k.security == nil {
		return nil
	}
	return errors.Join(
		os.WriteFile(k.keystore(), k.security.Certificate.keystore(), 0o600),
		os.WriteFile(k.truststore(), k.security.ClientCA, 0o600))
}

// secure adds what KafkaSecurity promises to the settings of a node.
func (k *Kafka) secure(lines map[string]string, node *kafkaNode) {
	if k.security == nil {
		return
	}
	listeners := ",SASL_SSL://" + address(node.saslPort) + ",SSL://" + address(node.tlsPort)
	lines["listeners"] += listeners
	lines["advertised.listeners"] += listeners
	lines["listener.security.protocol.map"] += ",SASL_SSL:SASL_SSL,SSL:SSL"

	lines["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
	lines["super.users"] = "User:ANONYMOUS"

	lines["ssl.keystore.type"], lines["ssl.keystore.location"] = "PEM", k.keystore()
	lines["ssl.truststore.type"], lines["ssl.truststore.location"] = "PEM", k.truststore()
	lines["listener.name.ssl.ssl.client.auth"] = "required"

	const classes = "org.apache.kafka.common.security."
	var users strings.Builder
	for _, name := range slices.Sorted(maps.Keys(k.security.Users)) {
		fmt.Fprintf(&users, " user_%s=%q", name, k.security.Users[name])
	}
	lines["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
	for mechanism, login := range map[string]string{ //nolint:gosec // G101: names of classes
		"plain":         "plain.PlainLoginModule required" + users.String(),
		"scram-sha-256": "scram.ScramLoginModule required",
		"scram-sha-512": "scram.ScramLoginModule required",
		"oauthbearer":   `oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"`,
	} {
		lines["listener.name.sasl_ssl."+mechanism+".sasl.jaas.config"] = classes + login + ";"
	}
}
