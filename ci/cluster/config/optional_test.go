package config

import (
	"reflect"
	"strings"
	"testing"
)

// Longhorn's extensions are wanted for Longhorn alone.
func TestAClusterMayDoWithoutStorageAndALoadBalancer(t *testing.T) {
	head, rest, _ := strings.Cut(blueText(t), "loadBalancer:\n")
	_, rest, _ = strings.Cut(rest, "gitops:\n")
	text := strings.Replace(head, "[siderolabs/iscsi-tools, siderolabs/util-linux-tools]", "[]", 1) + "loadBalancer: none\nstorage: none\ngitops:\n" + rest
	c, err := parse("cluster.yaml", "blue", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Storage.Has() || c.LoadBalancer.Has() || len(c.PoolAddresses(1)) > 0 {
		t.Errorf("read as %+v, %+v", c.Storage, c.LoadBalancer)
	}
	handed, err := c.HandOver()
	if err != nil || !strings.Contains(handed, `"loadBalancer":"none","storage":"none"`) {
		t.Fatalf("handed over as %s, %v", handed, err)
	}
	if again, err := Handed(handed); err != nil || !reflect.DeepEqual(again, c) {
		t.Errorf("%v: handed over as\n%+v\nnot\n%+v", err, again, c)
	}
	if rendered, err := parse("rendered", "blue", []byte(c.Text())); err != nil || !reflect.DeepEqual(rendered, c) {
		t.Errorf("%v\n%s", err, c.Text())
	}
	schema := compileSchema(t)
	if err := schema.Validate(instance(t, []byte(text))); err != nil {
		t.Error(err)
	}
	if schema.Validate(instance(t, []byte(strings.Replace(text, "storage: none", "storage: {replicas: 2}", 1)))) == nil {
		t.Error("the schema lets Longhorn have no extensions")
	}
	all := c.ForRemoval()
	if !all.Storage.Has() || !all.LoadBalancer.Has() || all.Storage.StorageClass != "longhorn" || c.Storage.Has() {
		t.Errorf("for removal it is %+v, %+v", all.Storage, all.LoadBalancer)
	}
}
