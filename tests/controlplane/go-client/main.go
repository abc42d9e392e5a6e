// Every typed call of Kubernetes' Go clients, for every kind, against the server of a kubeconfig.
//
// Standard input is a Job; standard output a JSON list of the calls that were made, each with its
// error, which is empty for a call that did what it should.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	patience = 30 * time.Second
)

// Job says what to do: where, with which encoding, and with which objects.
type Job struct {
	Kubeconfig string
	Namespace  string
	Protobuf   bool
	Objects    []Object
}

// Object is one of a kind, under two names, and what a controller reports of it.
type Object struct {
	Group, Version, Kind, Plural string
	Namespaced                   bool
	First, Second                json.RawMessage
	Status                       json.RawMessage
}

func (o Object) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Plural}
}

// Call is one call that was made.
type Call struct{ Kind, Call, Error string }

type report struct{ calls []Call }

func (r *report) add(kind, call string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.calls = append(r.calls, Call{kind, call, text})
}

// client is what every typed client has: T and L are pointers to the object and its list, A to the
// configuration that is applied.
type client[T, L, A any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Apply(context.Context, A, metav1.ApplyOptions) (T, error)
}

type withCollection interface {
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
}

type withStatus[T, A any] interface {
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	ApplyStatus(context.Context, A, metav1.ApplyOptions) (T, error)
}

// made is a new value of what T points to, read from JSON.
func made[T any](text []byte) (T, error) {
	value := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return value, json.Unmarshal(text, value)
}

func name(object any) string { return accessor(object).GetName() }

func accessor(object any) metav1.Object {
	found, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return found
}

func exercise[T, L, A any](ctx context.Context, r *report, o Object, c client[T, L, A]) {
	did := func(call string, err error) bool { r.add(o.Kind, call, err); return err == nil }
	wanted, err := made[T](o.First)
	if !did("read example", err) {
		return
	}
	first, err := c.Create(ctx, wanted, metav1.CreateOptions{FieldManager: "creator"})
	if !did("create", err) {
		return
	}
	got, err := c.Get(ctx, name(first), metav1.GetOptions{})
	if !did("get", err) {
		return
	}
	unchanged := accessor(got).GetResourceVersion() == accessor(first).GetResourceVersion()
	if unchanged && !equality.Semantic.DeepEqual(first, got) {
		did("get what was created", fmt.Errorf("%+v is not %+v", got, first))
	}
	did("update", retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := c.Get(ctx, name(first), metav1.GetOptions{})
		if err != nil {
			return err
		}
		annotations := accessor(current).GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["a"] = "1"
		accessor(current).SetAnnotations(annotations)
		_, err = c.Update(ctx, current, metav1.UpdateOptions{})
		return err
	}))
	annotate := []byte(`{"metadata":{"annotations":{"b":"2"}}}`)
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		_, err = c.Patch(ctx, name(first), kind, annotate, metav1.PatchOptions{})
		did(string(kind), err)
	}
	add := []byte(`[{"op":"add","path":"/metadata/annotations/c","value":"3"}]`)
	patched, err := c.Patch(ctx, name(first), types.JSONPatchType, add, metav1.PatchOptions{})
	if did(string(types.JSONPatchType), err) {
		found := accessor(patched).GetAnnotations()
		if found["a"] != "1" || found["b"] != "2" || found["c"] != "3" {
			did("three annotations", fmt.Errorf("%v", found))
		}
	}
	exerciseApply(ctx, did, o, c)
	exerciseWatch(ctx, did, o, c, accessor(first))
	exerciseEnd(ctx, did, o, c, name(first))
}

func exerciseApply[T, L, A any](
	ctx context.Context, did func(string, error) bool, o Object, c client[T, L, A],
) {
	options := metav1.ApplyOptions{FieldManager: "applier", Force: true}
	applied, err := made[A](o.First)
	if did("read what is applied", err) {
		_, err = c.Apply(ctx, applied, options)
		did("apply", err)
	}
	second, err := made[A](o.Second)
	if did("read what is applied anew", err) {
		_, err = c.Apply(ctx, second, options)
		did("apply anew", err)
	}
	status, ok := c.(withStatus[T, A])
	if !ok || o.Status == nil {
		return
	}
	reported, err := made[A](withStatusOf(o))
	if did("read status", err) {
		_, err = status.ApplyStatus(ctx, reported, options)
		did("apply status", err)
	}
	wanted, _ := made[T](o.First)
	did("update status", retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := c.Get(ctx, name(wanted), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = status.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	}))
}

// withStatusOf is the first object's identity and the status.
func withStatusOf(o Object) []byte {
	var object map[string]any
	if err := json.Unmarshal(o.First, &object); err != nil {
		panic(err)
	}
	metadata := object["metadata"].(map[string]any)
	names := map[string]any{"name": metadata["name"]}
	if o.Namespaced {
		names["namespace"] = metadata["namespace"]
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": object["apiVersion"], "kind": object["kind"],
		"metadata": names, "status": o.Status,
	})
	if err != nil {
		panic(err)
	}
	return text
}

func exerciseWatch[T, L, A any](
	ctx context.Context, did func(string, error) bool, o Object, c client[T, L, A], first metav1.Object,
) {
	stream, err := c.Watch(ctx, metav1.ListOptions{
		ResourceVersion: first.GetResourceVersion(), AllowWatchBookmarks: true,
		FieldSelector: "metadata.name=" + first.GetName(),
	})
	if !did("watch", err) {
		return
	}
	defer stream.Stop()
	select {
	case event := <-stream.ResultChan():
		if event.Type != watch.Modified {
			did("first event", fmt.Errorf("%v %+v", event.Type, event.Object))
		}
	case <-ctx.Done():
		did("first event", ctx.Err())
	}
}

func exerciseEnd[T, L, A any](
	ctx context.Context, did func(string, error) bool, o Object, c client[T, L, A], first string,
) {
	one := int64(1)
	list, err := c.List(ctx, metav1.ListOptions{Limit: one})
	if did("list", err) {
		items, err := meta.ExtractList(any(list).(runtime.Object))
		if did("items", err) && len(items) != 1 {
			did("one item", fmt.Errorf("there are %d", len(items)))
		}
	}
	zero, background := int64(0), metav1.DeletePropagationBackground
	did("delete", c.Delete(ctx, first, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, PropagationPolicy: &background,
	}))
	if several, ok := c.(withCollection); ok && o.Kind != "Namespace" {
		did("delete collection", several.DeleteCollection(ctx, metav1.DeleteOptions{
			GracePeriodSeconds: &zero,
		}, metav1.ListOptions{LabelSelector: "run=goclient"}))
	}
}

func typed(ctx context.Context, r *report, job Job, config *rest.Config) {
	core := kubernetes.NewForConfigOrDie(config)
	extensions := apiextensions.NewForConfigOrDie(config)
	ns := job.Namespace
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	_, err := core.CoreV1().ServiceAccounts(ns).Create(ctx, robot, metav1.CreateOptions{})
	r.add("ServiceAccount", "create the pods'", err)
	for _, o := range job.Objects {
		switch o.Group + "/" + o.Kind {
		case "/ConfigMap":
			exercise(ctx, r, o, core.CoreV1().ConfigMaps(ns))
		case "/Secret":
			exercise(ctx, r, o, core.CoreV1().Secrets(ns))
		case "/ServiceAccount":
			exercise(ctx, r, o, core.CoreV1().ServiceAccounts(ns))
		case "/Namespace":
			exercise(ctx, r, o, core.CoreV1().Namespaces())
		case "/Node":
			exercise(ctx, r, o, core.CoreV1().Nodes())
		case "/Pod":
			exercise(ctx, r, o, core.CoreV1().Pods(ns))
		case "/Event":
			exercise(ctx, r, o, core.CoreV1().Events(ns))
		case "events.k8s.io/Event":
			exercise(ctx, r, o, core.EventsV1().Events(ns))
		case "batch/Job":
			exercise(ctx, r, o, core.BatchV1().Jobs(ns))
		case "coordination.k8s.io/Lease":
			exercise(ctx, r, o, core.CoordinationV1().Leases(ns))
		case "rbac.authorization.k8s.io/Role":
			exercise(ctx, r, o, core.RbacV1().Roles(ns))
		case "rbac.authorization.k8s.io/RoleBinding":
			exercise(ctx, r, o, core.RbacV1().RoleBindings(ns))
		case "rbac.authorization.k8s.io/ClusterRole":
			exercise(ctx, r, o, core.RbacV1().ClusterRoles())
		case "rbac.authorization.k8s.io/ClusterRoleBinding":
			exercise(ctx, r, o, core.RbacV1().ClusterRoleBindings())
		case "admissionregistration.k8s.io/ValidatingAdmissionPolicy":
			exercise(ctx, r, o, core.AdmissionregistrationV1().ValidatingAdmissionPolicies())
		case "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding":
			exercise(ctx, r, o, core.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings())
		case "apiextensions.k8s.io/CustomResourceDefinition":
			exercise(ctx, r, o, extensions.ApiextensionsV1().CustomResourceDefinitions())
		default:
			custom(ctx, r, o, dynamic.NewForConfigOrDie(config).Resource(o.resource()).Namespace(ns))
		}
	}
	others(ctx, r, core, ns)
}

// custom is what can be done with a kind that has no types.
func custom(ctx context.Context, r *report, o Object, c dynamic.ResourceInterface) {
	did := func(call string, err error) bool { r.add(o.Kind, call, err); return err == nil }
	object := &unstructured.Unstructured{}
	if !did("read example", object.UnmarshalJSON(o.First)) {
		return
	}
	first, err := c.Create(ctx, object.DeepCopy(), metav1.CreateOptions{})
	if !did("create", err) {
		return
	}
	first.SetAnnotations(map[string]string{"a": "1"})
	_, err = c.Update(ctx, first, metav1.UpdateOptions{})
	did("update", err)
	options := metav1.ApplyOptions{FieldManager: "applier", Force: true}
	_, err = c.Apply(ctx, first.GetName(), object.DeepCopy(), options)
	did("apply", err)
	status := &unstructured.Unstructured{}
	if did("read status", status.UnmarshalJSON(withStatusOf(o))) {
		_, err = c.ApplyStatus(ctx, first.GetName(), status, options)
		did("apply status", err)
	}
	_, err = c.List(ctx, metav1.ListOptions{Limit: 1})
	did("list", err)
	did("delete", c.Delete(ctx, first.GetName(), metav1.DeleteOptions{}))
}

// others are the calls that no kind of their own is stored for.
func others(ctx context.Context, r *report, core *kubernetes.Clientset, ns string) {
	seconds := int64(600)
	token, err := core.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "robot",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
		}}, metav1.CreateOptions{})
	r.add("TokenRequest", "create", err)
	review, err := core.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
			Token: token.Status.Token,
		}}, metav1.CreateOptions{})
	if err == nil && !review.Status.Authenticated {
		err = fmt.Errorf("not authenticated: %s", review.Status.Error)
	}
	r.add("TokenReview", "create", err)
	_, err = core.AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	r.add("SelfSubjectReview", "create", err)
	access := authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Resource: "pods"}
	_, err = core.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &access,
		}}, metav1.CreateOptions{})
	r.add("SelfSubjectAccessReview", "create", err)
	spec := authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: &access}
	_, err = core.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	r.add("SubjectAccessReview", "create", err)
	_, err = core.AuthorizationV1().LocalSubjectAccessReviews(ns).Create(ctx,
		&authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Spec: spec,
		}, metav1.CreateOptions{})
	r.add("LocalSubjectAccessReview", "create", err)
	_, err = core.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{
			Namespace: ns,
		}}, metav1.CreateOptions{})
	r.add("SelfSubjectRulesReview", "create", err)
	about(r, core)
}

// about is what a server says about itself.
func about(r *report, core *kubernetes.Clientset) {
	_, err := core.Discovery().ServerVersion()
	r.add("discovery", "version", err)
	_, err = core.Discovery().ServerPreferredResources()
	r.add("discovery", "preferred resources", err)
	document, err := core.Discovery().OpenAPISchema()
	if err == nil && len(document.GetDefinitions().GetAdditionalProperties()) < 100 {
		err = fmt.Errorf("too few definitions")
	}
	r.add("discovery", "OpenAPI v2", err)
	_, err = core.Discovery().OpenAPIV3().Paths()
	r.add("discovery", "OpenAPI v3", err)
}

// caches fills an informer, and lists and watches the metadata, of every kind.
func caches(ctx context.Context, r *report, job Job, config *rest.Config) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		dynamic.NewForConfigOrDie(config), 0, job.Namespace, nil)
	everywhere := dynamicinformer.NewDynamicSharedInformerFactory(
		dynamic.NewForConfigOrDie(config), 0)
	for _, o := range job.Objects {
		if o.Namespaced {
			factory.ForResource(o.resource()).Informer()
		} else {
			everywhere.ForResource(o.resource()).Informer()
		}
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for _, one := range []dynamicinformer.DynamicSharedInformerFactory{factory, everywhere} {
		one.Start(ctx.Done())
		for resource, synced := range one.WaitForCacheSync(ctx.Done()) {
			var err error
			if !synced {
				err = fmt.Errorf("was not filled within %v", patience)
			}
			r.add(resource.Resource, "informer", err)
		}
	}
	only := metadata.NewForConfigOrDie(config)
	for _, o := range job.Objects {
		_, err := only.Resource(o.resource()).List(ctx, metav1.ListOptions{})
		r.add(o.Kind, "list metadata", err)
		stream, err := only.Resource(o.resource()).Watch(ctx, metav1.ListOptions{})
		r.add(o.Kind, "watch metadata", err)
		if err == nil {
			stream.Stop()
		}
	}
}

func run() error {
	var job Job
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", job.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	plain := rest.CopyConfig(config)
	if job.Protobuf {
		config.ContentType = protobuf
		config.AcceptContentTypes = protobuf + ",application/json"
	}
	ctx, stop := context.WithTimeout(context.Background(), 4*patience)
	defer stop()
	r := &report{}
	typed(ctx, r, job, config)
	caches(ctx, r, job, plain)
	return json.NewEncoder(os.Stdout).Encode(r.calls)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
