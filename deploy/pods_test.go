//go:build deploy

package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// object has the fields of a manifest that the tests check, for every kind of object.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template       podTemplate
		PodSelector    selector `yaml:"podSelector"`
		policy         `yaml:",inline"`
		Selector       selector
		Suspend        bool
		MaxUnavailable *int `yaml:"maxUnavailable"`
		Succeeded      int  `yaml:"successfulJobsHistoryLimit"`
		Failed         int  `yaml:"failedJobsHistoryLimit"`
		JobTemplate    struct {
			Spec struct {
				Template podTemplate
				TTL      int `yaml:"ttlSecondsAfterFinished"`
			}
		} `yaml:"jobTemplate"`
		ScaleTargetRef struct{ Name string } `yaml:"scaleTargetRef"`
		MinReplicas    int                   `yaml:"minReplicaCount"`
		MaxReplicas    int                   `yaml:"maxReplicaCount"`
		Triggers       []struct {
			Metadata          map[string]string
			AuthenticationRef struct{ Name string } `yaml:"authenticationRef"`
		}
	}
	Data map[string]string
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type podTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     pod
}

type pod struct {
	ServiceAccountName string `yaml:"serviceAccountName"`
	Token              *bool  `yaml:"automountServiceAccountToken"`
	Links              *bool  `yaml:"enableServiceLinks"`
	Grace              int    `yaml:"terminationGracePeriodSeconds"`
	HostNetwork        bool   `yaml:"hostNetwork"`
	HostPID            bool   `yaml:"hostPID"`
	HostIPC            bool   `yaml:"hostIPC"`
	Security           struct {
		NonRoot bool `yaml:"runAsNonRoot"`
		User    int  `yaml:"runAsUser"`
		Seccomp struct {
			Type string
		} `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Init       []container `yaml:"initContainers"`
	Containers []container
	Volumes    []map[string]any
}

type container struct {
	Name     string
	Image    string
	Args     []string
	Env      []variable
	EnvFrom  []source `yaml:"envFrom"`
	Mounts   []mount  `yaml:"volumeMounts"`
	Security struct {
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		Privileged   bool
		ReadOnly     bool `yaml:"readOnlyRootFilesystem"`
		Capabilities struct{ Drop, Add []string }
	} `yaml:"securityContext"`
	Resources struct{ Requests, Limits map[string]string }
	Liveness  probe `yaml:"livenessProbe"`
	Readiness probe `yaml:"readinessProbe"`
}

type (
	variable struct {
		Name      string
		Value     string
		ValueFrom map[string]any `yaml:"valueFrom"`
	}
	source struct {
		ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
	}
	mount struct {
		Name     string
		Path     string `yaml:"mountPath"`
		ReadOnly bool   `yaml:"readOnly"`
	}
	probe struct {
		HTTP struct{ Path, Port string } `yaml:"httpGet"`
	}
)

func objects(t *testing.T, overlay string) []object {
	t.Helper()
	documents := yaml.NewDecoder(bytes.NewReader([]byte(build(t, overlay))))
	var all []object
	for {
		var o object
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

// The method pods returns the pod templates of an object.
func (o *object) pods() []podTemplate {
	switch o.Kind {
	case "Deployment":
		return []podTemplate{o.Spec.Template}
	case "CronJob":
		return []podTemplate{o.Spec.JobTemplate.Spec.Template}
	default:
		return nil
	}
}

// TestPodsAreRestricted checks every pod against the restricted profile of the Pod Security
// Standards and against the additional rules of this test.
func TestPodsAreRestricted(t *testing.T) {
	for _, overlay := range overlays(t) {
		for _, o := range objects(t, overlay) {
			for _, template := range o.pods() {
				p := template.Spec
				for _, fault := range slices.Concat(p.faults(), containerFaults(&p)) {
					t.Errorf("%s: %s %s: %s", overlay, o.Kind, o.Metadata.Name, fault)
				}
			}
		}
	}
}

func (p *pod) faults() []string {
	var faults []string
	expect := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	expect(p.Security.NonRoot && p.Security.User > 0, "may run as root")
	expect(p.Security.Seccomp.Type == "RuntimeDefault", "has no seccomp profile")
	expect(p.Token != nil && !*p.Token, "gets a token")
	expect(p.Links != nil && !*p.Links, "gets variables of Services")
	expect(!p.HostNetwork && !p.HostPID && !p.HostIPC, "shares a namespace of the host")
	for _, volume := range p.Volumes {
		for kind := range volume {
			expect(slices.Contains([]string{"name", "secret", "configMap", "emptyDir", "projected"}, kind), "has a volume of kind "+kind)
		}
	}
	return faults
}

func containerFaults(p *pod) []string {
	var faults []string
	for _, c := range slices.Concat(p.Init, p.Containers) {
		s := c.Security
		for fault, ok := range map[string]bool{
			"may gain privileges":            s.Escalation != nil && !*s.Escalation && !s.Privileged,
			"can write to its image":         s.ReadOnly,
			"keeps capabilities":             slices.Equal(s.Capabilities.Drop, []string{"ALL"}) && len(s.Capabilities.Add) == 0,
			"has no memory limit":            c.Resources.Limits["memory"] != "",
			"has no requests":                c.Resources.Requests["memory"] != "" && c.Resources.Requests["cpu"] != "",
			"is throttled by a CPU limit":    c.Resources.Limits["cpu"] == "",
			"has a secret in plain text":     !plainSecret(c.Env),
			"has a mount it could change":    !slices.ContainsFunc(c.Mounts, func(m mount) bool { return !m.ReadOnly }),
			"lacks an environment or a name": len(c.EnvFrom) > 0 && c.Name != "",
		} {
			if !ok {
				faults = append(faults, "container "+c.Name+" "+fault)
			}
		}
	}
	return faults
}

func plainSecret(env []variable) bool {
	return slices.ContainsFunc(env, func(v variable) bool {
		return v.Value != "" && (strings.Contains(v.Name, "PASSWORD") || strings.Contains(v.Name, "TOKEN")) && !strings.HasSuffix(v.Name, "_FILE")
	})
}

// TestProjectorPods checks the settings that only the command `run` needs.
func TestProjectorPods(t *testing.T) {
	for _, overlay := range overlays(t) {
		for _, o := range objects(t, overlay) {
			if o.Kind != "Deployment" {
				continue
			}
			p := o.Spec.Template.Spec
			c := p.Containers[0]
			if c.Liveness.HTTP.Path != "/livez" || c.Readiness.HTTP.Path != "/readyz" {
				t.Errorf("%s: probes %+v %+v", overlay, c.Liveness, c.Readiness)
			}
			// A stop takes at most 10 s. A shorter grace period would kill the process before its
			// stop has finished.
			if p.Grace < 15 {
				t.Errorf("%s: %d s to stop", overlay, p.Grace)
			}
			if len(p.Init) != 1 || !slices.Equal(p.Init[0].Args, []string{"migrate"}) {
				t.Errorf("%s: the schema is not migrated before", overlay)
			}
			for _, m := range c.Mounts {
				if m.Name == "owner" {
					t.Errorf("%s: the projector sees the password of the schema's owner", overlay)
				}
			}
		}
	}
}

// TestMemoryFollowsTheLimit checks that MEMORY_LIMIT is not set. The program then uses three
// quarters of the container's limit. The rest is for memory outside the Go heap that the kernel
// also counts.
func TestMemoryFollowsTheLimit(t *testing.T) {
	for _, overlay := range overlays(t) {
		for _, o := range objects(t, overlay) {
			for _, template := range o.pods() {
				for _, c := range template.Spec.Containers {
					if slices.ContainsFunc(c.Env, func(v variable) bool { return v.Name == "MEMORY_LIMIT" }) || c.Resources.Limits["memory"] == "" {
						t.Errorf("%s: %s %s: MEMORY_LIMIT is set, or the container has no limit", overlay, o.Kind, o.Metadata.Name)
					}
				}
			}
		}
	}
}

// TestJobsOfPeopleStay checks that every overlay has the template for manual commands. Finished
// Jobs and their logs must stay for the week that docs/deploy.md promises.
func TestJobsOfPeopleStay(t *testing.T) {
	const week, many = 7 * 24 * 60 * 60, 1000
	for _, overlay := range overlays(t) {
		templates := 0
		for _, o := range objects(t, overlay) {
			if o.Kind != "CronJob" {
				continue
			}
			templates++
			if !o.Spec.Suspend || o.Spec.JobTemplate.Spec.TTL != week || o.Spec.Succeeded < many || o.Spec.Failed < many {
				t.Errorf("%s: %s runs by itself, or its Jobs do not stay for a week: %+v", overlay, o.Metadata.Name, o.Spec)
			}
		}
		if templates == 0 && overlay != "monitoring" {
			t.Errorf("%s has no template of commands by hand", overlay)
		}
	}
}

// TestManifestsOfImages checks that every container has the placeholder projector:set-a-release as
// its image. Without a tag, Kubernetes would pull the image latest.
func TestManifestsOfImages(t *testing.T) {
	for _, overlay := range overlays(t) {
		for _, o := range objects(t, overlay) {
			for _, template := range o.pods() {
				for _, c := range slices.Concat(template.Spec.Init, template.Spec.Containers) {
					if c.Image != "projector:set-a-release" {
						t.Errorf("%s: %s %s has the image %s", overlay, o.Kind, o.Metadata.Name, c.Image)
					}
				}
			}
		}
	}
}
