locals {
  namespace = "longhorn-system"
  # The only class that the chart makes by itself.
  charts_class = "longhorn"
}

# Longhorn's managers mount the hosts' disks, which Talos refuses to pods by default.
resource "kubectl_manifest" "namespace" {
  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true
  wait              = true

  yaml_body = yamlencode({
    apiVersion = "v1"
    kind       = "Namespace"
    metadata = {
      name   = local.namespace
      labels = { for mode in ["enforce", "audit", "warn"] : "pod-security.kubernetes.io/${mode}" => "privileged" }
    }
  })
}

# Nothing here waits for pods; castle's gates watch. See the engine.
resource "helm_release" "longhorn" {
  name            = "longhorn"
  namespace       = local.namespace
  chart           = "${var.charts}/${var.chart}"
  version         = yamldecode(file("${var.charts}/${var.chart}/Chart.yaml")).version
  wait            = false
  upgrade_install = true
  # Its removal runs a job that first detaches and deletes all volumes.
  timeout = 600

  values = [yamlencode({
    defaultSettings = {
      defaultDataPath     = var.cluster.storage.dataPath
      defaultReplicaCount = var.cluster.storage.replicas
    }
    persistence = {
      defaultClass             = var.cluster.storage.storageClass == local.charts_class
      defaultClassReplicaCount = var.cluster.storage.replicas
    }
  })]

  depends_on = [kubectl_manifest.namespace]
}

resource "kubectl_manifest" "class" {
  count = var.cluster.storage.storageClass == local.charts_class ? 0 : 1

  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true
  force_new         = true # a class's parameters cannot be changed; its volumes do not go with it

  yaml_body = yamlencode({
    apiVersion = "storage.k8s.io/v1"
    kind       = "StorageClass"
    metadata = {
      name        = var.cluster.storage.storageClass
      annotations = { "storageclass.kubernetes.io/is-default-class" = "true" }
    }
    provisioner          = "driver.longhorn.io"
    allowVolumeExpansion = true
    reclaimPolicy        = "Delete"
    volumeBindingMode    = "Immediate"
    parameters = {
      numberOfReplicas    = tostring(var.cluster.storage.replicas)
      staleReplicaTimeout = "30"
    }
  })
}
