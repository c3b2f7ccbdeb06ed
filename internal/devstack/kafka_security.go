package devstack

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// KafkaSecurity opens two TLS listeners. The first authenticates users by SASL. The second requires
// a client certificate. On both listeners, every operation needs an ACL. The plain listener stays
// open for the administrator, who may do everything.
//
// The SASL mechanisms are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, and OAUTHBEARER with unsecured
// tokens (RFC 7515, "alg" none). The administrator creates the users of the SCRAM mechanisms.
type KafkaSecurity struct {
	// Certificate is used by all brokers.
	Certificate Certificate
	// ClientCA is the certificate, in PEM, of the authority that issues client certificates.
	ClientCA []byte
	// Users has the users and passwords for PLAIN.
	Users map[string]string
}

// SASLAddrs returns the addresses of the SASL listeners, in the order of Addrs.
func (k *Kafka) SASLAddrs() []string { return k.addrs(func(n *kafkaNode) int { return n.saslPort }) }

// TLSAddrs returns the addresses of the listeners that require a client certificate, in the order
// of Addrs.
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

// secure adds the settings of KafkaSecurity to the settings of a node.
func (k *Kafka) secure(lines map[string]string, node *kafkaNode) {
	if k.security == nil {
		return
	}
	listeners := ",SASL_SSL://" + k.address(node.saslPort) + ",SSL://" + k.address(node.tlsPort)
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

// Authority is a certificate authority for one test.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is a certificate and its key (PKCS #8), both in PEM.
type Certificate struct{ Cert, Key []byte }

// NewAuthority creates an authority.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate("projector test CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert: cert, key: key}, err
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return pemBlock("CERTIFICATE", a.cert.Raw) }

// Issue issues a certificate for a server or a client. hosts are names or IP addresses.
func (a *Authority) Issue(commonName string, hosts ...string) (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	template := certificateTemplate(commonName)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Certificate{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return Certificate{Cert: pemBlock("CERTIFICATE", der), Key: pemBlock("PRIVATE KEY", private)}, err
}

// keystore joins key and certificate in one file, as Kafka requires.
func (c Certificate) keystore() []byte { return bytes.Join([][]byte{c.Key, c.Cert}, nil) }

func certificateTemplate(commonName string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: commonName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
