//go:build deploy

package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSelectorsMeetTheirPods checks the selectors, because a selector that selects nothing or
// everything is valid but wrong.
func TestSelectorsMeetTheirPods(t *testing.T) {
	for _, overlay := range overlays(t) {
		all := objects(t, overlay)
		for _, o := range all {
			wanted := o.Spec.Selector.MatchLabels
			kinds := "Deployment"
			switch o.Kind {
			case "NetworkPolicy":
				wanted, kinds = o.Spec.PodSelector.MatchLabels, "Deployment CronJob"
			case "PodDisruptionBudget", "PodMonitor", "Deployment":
			default:
				continue
			}
			if len(wanted) == 0 {
				t.Errorf("%s: %s %s selects every pod of the namespace", overlay, o.Kind, o.Metadata.Name)
			}
			if fault := met(all, wanted, kinds); fault != "" && overlay != "monitoring" {
				t.Errorf("%s: %s %s: %s", overlay, o.Kind, o.Metadata.Name, fault)
			}
		}
	}
}

// The function met returns what is wrong with a selector, or "". The selector must select at least
// one pod, and only pods of the object kinds in the parameter kinds.
func met(all []object, wanted map[string]string, kinds string) string {
	found := 0
	for _, o := range all {
		for _, template := range o.pods() {
			if !includes(template.Metadata.Labels, wanted) {
				continue
			}
			if found++; !strings.Contains(kinds, o.Kind) {
				return fmt.Sprintf("selects the pods of %s %s", o.Kind, o.Metadata.Name)
			}
		}
	}
	if found == 0 {
		return fmt.Sprintf("selects no pod: %v", wanted)
	}
	return ""
}

func includes(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// TestReferencesMeetTheirObjects checks the names in references. kustomize renames objects, but it
// does not change a reference in a kind of object that it does not know.
func TestReferencesMeetTheirObjects(t *testing.T) {
	for _, overlay := range overlays(t) {
		all := objects(t, overlay)
		has := map[string]*object{}
		for i := range all {
			has[all[i].Kind+" "+all[i].Metadata.Name] = &all[i]
		}
		expect := func(reference string) {
			if has[reference] == nil {
				t.Errorf("%s: there is no %s", overlay, reference)
			}
		}
		for _, o := range all {
			for _, template := range o.pods() {
				expect("ServiceAccount " + template.Spec.ServiceAccountName)
				for _, c := range slices.Concat(template.Spec.Init, template.Spec.Containers) {
					for _, from := range c.EnvFrom {
						expect("ConfigMap " + from.ConfigMapRef.Name)
					}
				}
			}
			if o.Kind == "ScaledObject" {
				target := "Deployment " + o.Spec.ScaleTargetRef.Name
				expect(target)
				expect("TriggerAuthentication " + o.Spec.Triggers[0].AuthenticationRef.Name)
				checkTrigger(t, o.Spec.Triggers[0].Metadata, has, has[target])
			}
		}
	}
}

// checkTrigger checks that the ConfigMap of the scaled Deployment has the variables that KEDA
// reads.
func checkTrigger(t *testing.T, trigger map[string]string, has map[string]*object, target *object) {
	t.Helper()
	if target == nil {
		return
	}
	env := has["ConfigMap "+target.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name]
	for _, key := range []string{"bootstrapServersFromEnv", "topicFromEnv", "consumerGroupFromEnv"} {
		if env == nil || env.Data[trigger[key]] == "" {
			t.Errorf("KEDA reads %s for %s, which is not set", trigger[key], key)
		}
	}
	if trigger["allowIdleConsumers"] != "false" {
		t.Error("KEDA may start more instances than there are partitions")
	}
}
