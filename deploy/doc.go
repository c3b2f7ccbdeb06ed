// Package deploy has what the projector is run with: an image, manifests for
// Kubernetes, a Compose file, alerts and a dashboard. There is no code here, only
// the tests that check all of it with the tools that will read it. Those with the build
// tag deploy need kubectl-validate, kustomize and compose-go, which `go run` builds,
// and Prometheus, which must be installed: make test-deploy.
package deploy
