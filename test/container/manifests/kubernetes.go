package main

import (
	"bytes"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the types of the kinds of objects that the files have.
var kinds = map[string]func() any{
	"v1 ConfigMap":                   func() any { return new(corev1.ConfigMap) },
	"v1 Pod":                         func() any { return new(corev1.Pod) },
	"v1 ServiceAccount":              func() any { return new(corev1.ServiceAccount) },
	"apps/v1 DaemonSet":              func() any { return new(appsv1.DaemonSet) },
	"resource.k8s.io/v1 DeviceClass": func() any { return new(resourcev1.DeviceClass) },
	"resource.k8s.io/v1 ResourceClaimTemplate":        func() any { return new(resourcev1.ResourceClaimTemplate) },
	"networking.k8s.io/v1 NetworkPolicy":              func() any { return new(networkingv1.NetworkPolicy) },
	"rbac.authorization.k8s.io/v1 ClusterRole":        func() any { return new(rbacv1.ClusterRole) },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() any { return new(rbacv1.ClusterRoleBinding) },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": func() any {
		return new(admissionv1.ValidatingAdmissionPolicy)
	},
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() any {
		return new(admissionv1.ValidatingAdmissionPolicyBinding)
	},
}

// kubernetes decodes each document strictly as the type of its kind, and validates it.
func kubernetes(text []byte) error {
	var all []error
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			return err
		}
		object, ok := kinds[head.APIVersion+" "+head.Kind]
		if !ok {
			return fmt.Errorf("document %d is %q of %q, which nothing here checks", i+1, head.Kind, head.APIVersion)
		}
		if err := yaml.UnmarshalStrict(document, object()); err != nil {
			all = append(all, fmt.Errorf("document %d, %s: %w", i+1, head.Kind, err))
			continue
		}
		var plain any
		if err := yaml.Unmarshal(document, &plain); err != nil {
			return err
		}
		if err := validate(head.APIVersion, head.Kind, plain); err != nil {
			all = append(all, fmt.Errorf("document %d, %s: %w", i+1, head.Kind, err))
		}
	}
	return errors.Join(all...)
}
