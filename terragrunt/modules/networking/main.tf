locals {
  namespace = "metallb-system"
  # The chart's ten seconds before the first look would be waited out by every creation.
  readiness = { initialDelaySeconds = 1, periodSeconds = 2 }
}

# The speaker announces addresses on the node's own network, which Talos refuses to pods by default.
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
resource "helm_release" "metallb" {
  name            = "metallb"
  namespace       = local.namespace
  chart           = "${var.charts}/metallb"
  version         = yamldecode(file("${var.charts}/metallb/Chart.yaml")).version
  wait            = false
  upgrade_install = true

  # The webhook's certificate is there before the controller starts, which would else have to wait for its kubelet, and
  # the kinds are, without which the programs end.
  postrender = {
    binary_path = "castle-cluster"
    args        = ["postrender", "metallb"]
  }

  values = [yamlencode({
    controller = { readinessProbe = local.readiness }
    # Layer 2 only.
    speaker = { frr = { enabled = false }, readinessProbe = local.readiness }
    frrk8s  = { enabled = false }
  })]

  depends_on = [kubectl_manifest.namespace]
}

# Pods that run are no webhook that answers. The pool is applied once, when it can be.
resource "terraform_data" "webhook" {
  triggers_replace = helm_release.metallb.metadata.revision

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait"]
    command     = "networking-webhook"
  }
}

resource "kubectl_manifest" "pool" {
  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true

  yaml_body = yamlencode({
    apiVersion = "metallb.io/v1beta1"
    kind       = "IPAddressPool"
    metadata   = { name = "castle", namespace = local.namespace }
    spec       = { addresses = var.cluster.loadBalancer.pool }
  })

  depends_on = [terraform_data.webhook]
}

resource "kubectl_manifest" "advertisement" {
  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true

  yaml_body = yamlencode({
    apiVersion = "metallb.io/v1beta1"
    kind       = "L2Advertisement"
    metadata   = { name = "castle", namespace = local.namespace }
    spec       = { ipAddressPools = ["castle"] }
  })

  depends_on = [terraform_data.webhook]
}
