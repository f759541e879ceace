package kubelettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"urdma/kubernetes/dra"
	"urdma/test/lab"
	"urdma/test/programtest"
)

const (
	packaging = "../../packaging/kubernetes/"
	chart     = packaging + "chart"
	programs  = "programs" // namespace of the pods that use RDMA
)

// server is a kube-apiserver, with etcd, without controllers, scheduler or nodes.
type server struct {
	t       *testing.T
	url     string
	admin   *kubernetes.Clientset
	objects dynamic.Interface
	mapper  meta.RESTMapper
}

// tokens are those of an administrator and of node a's kubelet.
const tokens = "admin,admin,1,system:masters\nnode-a,system:node:a,2,system:nodes\n"

func newServer(t *testing.T, l *lab.Lab) *server {
	t.Helper()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED: needs %s on PATH: %v", name, err)
		}
	}
	s := &server{t: t}
	process := s.start(l)
	config := s.config("admin")
	config.QPS = -1 // unlimited
	var err error
	if s.admin, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.objects, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	await(t, "the API server's readiness", func() error {
		if !process.Running() {
			t.Fatal("kube-apiserver has ended")
		}
		_, err := s.admin.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
	groups, err := restmapper.GetAPIGroupResources(s.admin.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return s
}

// start starts both programs.
func (s *server) start(l *lab.Lab) *lab.Process {
	s.t.Helper()
	dir := filepath.Join(l.Dir, "server")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	write(s.t, file("tokens"), tokens)
	writeKey(s.t, file("key"))
	etcd := fmt.Sprintf("http://127.0.0.1:%d", programtest.FreePort(s.t))
	start(s.t, l, "etcd", "--data-dir="+file("etcd"), "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://localhost:0", "--unsafe-no-fsync", "--log-level=error")
	port := fmt.Sprint(programtest.FreePort(s.t))
	s.url = "https://127.0.0.1:" + port
	return start(s.t, l, "kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--endpoint-reconciler-type=none", "--cert-dir="+file("certificates"), "--token-auth-file="+file("tokens"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+file("key"),
		"--service-account-signing-key-file="+file("key"), "--service-cluster-ip-range=10.96.0.0/16")
}

// config is that of a client with that token.
func (s *server) config(token string) *rest.Config {
	return &rest.Config{Host: s.url, BearerToken: token, WarningHandler: warnings{s.t},
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}} // a certificate that the server made for itself
}

func (s *server) client(token string) *kubernetes.Clientset {
	s.t.Helper()
	client, err := kubernetes.NewForConfig(s.config(token))
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// warnings of the API server are errors.
type warnings struct{ t *testing.T }

func (w warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.t.Errorf("the API server warns: %s", text)
}

// apply applies manifests as kubectl apply --server-side would, which refuses unknown and repeated fields.
func (s *server) apply(namespace, manifests string, dryRun ...string) {
	s.t.Helper()
	for _, text := range strings.Split(manifests, "\n---\n") {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			s.t.Fatal(err)
		}
		kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
		mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			s.t.Fatal(err)
		}
		all := s.objects.Resource(mapping.Resource)
		var those dynamic.ResourceInterface = all
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			those = all.Namespace(namespace)
		}
		if _, err := those.Patch(s.t.Context(), head.Name, types.ApplyPatchType, []byte(text), metav1.PatchOptions{
			FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}); err != nil {
			s.t.Errorf("%s %s: %v", head.Kind, head.Name, err)
		}
	}
}

// render returns the chart's manifests.
func render(t *testing.T, command string, values ...string) string {
	t.Helper()
	out, err := exec.Command(command, append([]string{"-render", chart}, values...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestAPIServer applies the manifests to an API server, and runs node a's driver with the rights that they give it.
func TestAPIServer(t *testing.T) {
	l := newLab(t)
	s := newServer(t, l)
	s.namespaces()
	command := filepath.Join(l.Dir, "manifests")
	if out, err := exec.Command("../../.ci/go", "build", "-C", "../../test/container/manifests", "-o", command, ".").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(all) == 0 {
		t.Fatal("no values: ", err)
	}
	s.apply("default", render(t, command), metav1.DryRunAll)
	for _, values := range all {
		s.apply("default", render(t, command, values), metav1.DryRunAll)
	}
	values := filepath.Join(l.Dir, "values.yaml")
	write(t, values, "dra: true\n")
	s.apply("default", render(t, command, values))
	for _, name := range []string{"server.yaml", "client.yaml", "claim.yaml", "sidecar.yaml"} {
		text, err := os.ReadFile(packaging + name)
		if err != nil {
			t.Fatal(err)
		}
		s.apply(programs, string(text))
	}
	if t.Failed() {
		t.FailNow()
	}
	driver := s.client(s.driverToken())
	s.awaitPolicy(driver)
	s.refusals(driver)
	s.unbound()
	testDriver(t, l, driver, s.admin, s.claim())
}

// namespaces does what controllers would do for pods. The namespace of programs has the strictest Pod Security Standard.
func (s *server) namespaces() {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: programs,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	_, err := s.admin.CoreV1().Namespaces().Create(s.t.Context(), namespace, metav1.CreateOptions{})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err2 := s.admin.CoreV1().ServiceAccounts(programs).Create(s.t.Context(), account, metav1.CreateOptions{})
	if err := errors.Join(err, err2); err != nil {
		s.t.Fatal(err)
	}
}

// driverToken returns the token of node a's driver. It does what the DaemonSet's controller and kubelet would.
func (s *server) driverToken() (token string) {
	s.t.Helper()
	ctx := s.t.Context()
	kubelet := s.client("node-a").CoreV1()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := kubelet.Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	set, err := s.admin.AppsV1().DaemonSets("default").Get(ctx, "urdmad", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "urdmad-a", Labels: set.Spec.Template.Labels},
		Spec: set.Spec.Template.Spec}
	pod.Spec.NodeName = "a"
	if pod, err = s.admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}}}
	await(s.t, "kubelet's permission to ask for its pod's token", func() error {
		answer, err := kubelet.ServiceAccounts("default").CreateToken(ctx, pod.Spec.ServiceAccountName, request,
			metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		return err
	})
	return token
}

// sliceOf is an empty slice of that node, or of all nodes.
func sliceOf(node string) *resourceapi.ResourceSlice {
	pool := resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node},
		Spec: resourceapi.ResourceSliceSpec{Driver: dra.Name, Pool: pool}}
	if node == "all" {
		all := true
		s.Spec.AllNodes = &all
	} else {
		s.Spec.NodeName = &node
	}
	return s
}

// byPolicy is what the chart's admission policy says.
const byPolicy = "denied request: this slice is of another node"

// awaitPolicy waits until the API server has read the role and the policy.
func (s *server) awaitPolicy(driver kubernetes.Interface) {
	s.t.Helper()
	await(s.t, "the policy", func() error {
		_, err := driver.ResourceV1().ResourceSlices().Create(s.t.Context(), sliceOf("b"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), byPolicy) {
			return fmt.Errorf("a slice of another node: %v", err)
		}
		return nil
	})
}

// refusals tries what node a's driver must not do.
func (s *server) refusals(driver kubernetes.Interface) {
	s.t.Helper()
	ctx := s.t.Context()
	slices := driver.ResourceV1().ResourceSlices()
	other, err := s.admin.ResourceV1().ResourceSlices().Create(ctx, sliceOf("b"), metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = slices.Create(ctx, sliceOf("all"), metav1.CreateOptions{})
	s.refused("create a slice of all nodes", byPolicy, err)
	foreign := sliceOf("a")
	foreign.Spec.Driver = "gpu.example.com"
	_, err = slices.Create(ctx, foreign, metav1.CreateOptions{})
	s.refused("create a slice of another driver", "denied request: this slice is of another driver", err)
	other.Spec.Pool.Generation++
	_, err = slices.Update(ctx, other, metav1.UpdateOptions{})
	s.refused("update another node's slice", byPolicy, err)
	s.refused("delete another node's slice", byPolicy, slices.Delete(ctx, other.Name, metav1.DeleteOptions{}))

	const byRole = `User "system:serviceaccount:default:urdmad" cannot `
	_, err = slices.Patch(ctx, "slice-a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	s.refused("patch a slice", byRole+"patch", err)
	s.refused("delete all slices", byRole+"deletecollection", slices.DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}))
	_, err = driver.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	s.refused("list pods", byRole+"list", err)
	_, err = driver.CoreV1().Secrets("default").Get(ctx, "x", metav1.GetOptions{})
	s.refused("get a secret", byRole+"get", err)
	_, err = driver.ResourceV1().ResourceClaims("default").UpdateStatus(ctx, newClaim(), metav1.UpdateOptions{})
	s.refused("allocate a claim", byRole+"update", err)
	s.refused("delete the device class", byRole+"delete",
		driver.ResourceV1().DeviceClasses().Delete(ctx, dra.Name, metav1.DeleteOptions{}))
}

func (s *server) refused(what, why string, err error) {
	s.t.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		s.t.Errorf("%s: %v; expected %q", what, err, why)
	}
}

// unbound tries the service account's token that belongs to no pod, so to no node.
func (s *server) unbound() {
	s.t.Helper()
	answer, err := s.admin.CoreV1().ServiceAccounts("default").CreateToken(s.t.Context(), "urdmad",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.client(answer.Status.Token).ResourceV1().ResourceSlices().Create(s.t.Context(), sliceOf("a"),
		metav1.CreateOptions{})
	s.refused("create a slice by a token of no node", byPolicy, err)
}

// claim does what a user and the scheduler would.
func (s *server) claim() *resourceapi.ResourceClaim {
	s.t.Helper()
	claim := newClaim()
	claim.UID = ""
	claims := s.admin.ResourceV1().ResourceClaims(claim.Namespace)
	created, err := claims.Create(s.t.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	created.Status = claim.Status
	if created, err = claims.UpdateStatus(s.t.Context(), created, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return created
}

// await waits until f returns nil.
func await(t *testing.T, what string, f func() error) {
	t.Helper()
	for end := time.Now().Add(lab.Patience); ; time.Sleep(50 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// writeKey writes a new key that signs the service accounts' tokens.
func writeKey(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}
