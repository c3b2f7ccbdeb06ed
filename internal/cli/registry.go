package cli

import (
	"net/url"

	"projector/internal/credential"
	"projector/internal/registry"
)

// schemaRegistryFlags say where schemas are, and who asks for them. Files are read
// again when they are needed.
type schemaRegistryFlags struct {
	SchemaRegistryURL          []string `name:"schema-registry-url" env:"SCHEMA_REGISTRY_URL" placeholder:"URL" group:"Schema registry" help:"With avro and protobuf, the schema registry; several equal ones separated by commas."`
	SchemaRegistryCA           string   `name:"schema-registry-ca" env:"SCHEMA_REGISTRY_CA" type:"path" placeholder:"FILE" group:"Schema registry" help:"CA certificates (PEM) for https; default the system's."`
	SchemaRegistryUsername     string   `name:"schema-registry-username" env:"SCHEMA_REGISTRY_USERNAME" placeholder:"NAME" group:"Schema registry" help:"User name."`
	SchemaRegistryPassword     string   `name:"schema-registry-password" env:"SCHEMA_REGISTRY_PASSWORD" placeholder:"SECRET" group:"Schema registry" help:"Password; better given by file."`
	SchemaRegistryPasswordFile string   `name:"schema-registry-password-file" env:"SCHEMA_REGISTRY_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Schema registry" help:"File that holds the password."`
}

const flagRegistryURL = "--schema-registry-url (SCHEMA_REGISTRY_URL)"

// registry is how to reach it, for a format that needs one. A file that cannot be read
// now is an error; one that cannot be read later fails a request, which is tried again.
func (f *schemaRegistryFlags) registry(format string) (registry.Config, error) {
	urls := items(f.SchemaRegistryURL)
	if len(urls) == 0 {
		return registry.Config{}, usagef("%s: is needed for --format=%s", flagRegistryURL, format)
	}
	for _, text := range urls {
		if err := checkRegistryURL(text); err != nil {
			return registry.Config{}, err
		}
	}
	transport := credential.TLS{CA: f.SchemaRegistryCA}
	if _, err := transport.Config(); err != nil {
		return registry.Config{}, usagef("--schema-registry-ca (SCHEMA_REGISTRY_CA): %w", err)
	}
	if err := f.checkCredentials(); err != nil {
		return registry.Config{}, err
	}
	return registry.Config{
		URLs: urls, Username: f.SchemaRegistryUsername, Password: f.registryPassword, TLS: transport,
	}, nil
}

// checkRegistryURL never repeats the URL: it may hold a password.
func checkRegistryURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return usagef("%s: must be a URL such as https://registry:8081", flagRegistryURL)
	case u.User != nil:
		return usagef("%s: must not hold a user or a password; give --schema-registry-username and --schema-registry-password-file", flagRegistryURL)
	case u.RawQuery != "" || u.Fragment != "":
		return usagef("%s: must not have a query or a fragment", flagRegistryURL)
	}
	return nil
}

func (f *schemaRegistryFlags) checkCredentials() error {
	given := f.SchemaRegistryPassword != "" || f.SchemaRegistryPasswordFile != ""
	switch {
	case f.SchemaRegistryPassword != "" && f.SchemaRegistryPasswordFile != "":
		return usagef("--schema-registry-password and --schema-registry-password-file " +
			"(SCHEMA_REGISTRY_PASSWORD, SCHEMA_REGISTRY_PASSWORD_FILE): give one of them")
	case given != (f.SchemaRegistryUsername != ""):
		return usagef("--schema-registry-username and --schema-registry-password-file " +
			"(SCHEMA_REGISTRY_USERNAME, SCHEMA_REGISTRY_PASSWORD_FILE): give both or none")
	}
	if _, err := f.registryPassword(); err != nil {
		return usageError{err}
	}
	return nil
}

// registryPassword is the password as it is now.
func (f *schemaRegistryFlags) registryPassword() (string, error) {
	if f.SchemaRegistryPasswordFile == "" {
		return f.SchemaRegistryPassword, nil
	}
	return fromFile("--schema-registry-password-file (SCHEMA_REGISTRY_PASSWORD_FILE)", f.SchemaRegistryPasswordFile)
}
