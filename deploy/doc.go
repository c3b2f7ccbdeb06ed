// Package deploy has the files to run the projector with: an image, manifests for Kubernetes, a
// Compose file, alerts and a dashboard. Its only code is the tests, which check these files with
// the tools that read them. The tests with the build tag deploy need kubeconform, kustomize
// and compose-go, which `go run` builds. They also need an installed Prometheus. `make test-deploy`
// runs them.
package deploy
