locals {
  namespace = "flux-system"
  store     = { kind = "ClusterSecretStore", name = "infisical-flux" }

  # Without Infisical castle has applied the two Secrets before.
  external = var.cluster.secrets.infisical != "none"

  # A Git server with a certificate of a private authority needs that authority's.
  credentials = merge(
    { username = "GITOPS_USERNAME", password = "GITOPS_TOKEN" },
    contains(var.inventory[*].name, "GITOPS_CA") ? { "ca.crt" = "GITOPS_CA" } : {},
  )

  # As flux install labels the namespace.
  chart = yamldecode(file("${var.charts}/flux/Chart.yaml"))
  labels = {
    "app.kubernetes.io/part-of"               = "flux"
    "app.kubernetes.io/instance"              = local.namespace
    "app.kubernetes.io/version"               = local.chart.appVersion
    "pod-security.kubernetes.io/warn"         = "restricted"
    "pod-security.kubernetes.io/warn-version" = "latest"
  }

  # A repository of flux bootstrap has these objects, too. Flux must not remove them as a part of what it has applied: it would go
  # before the rest does.
  stays = { "kustomize.toolkit.fluxcd.io/prune" = "disabled" }
}

resource "kubectl_manifest" "namespace" {
  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true
  wait              = true

  yaml_body = yamlencode({
    apiVersion = "v1"
    kind       = "Namespace"
    metadata   = { name = local.namespace, annotations = local.stays, labels = local.labels }
  })
}

# What Flux applies already must be able to go on under the lockdown: before its controllers get their flags, this looks at each object.
resource "terraform_data" "tenancy" {
  count = var.cluster.gitops.tenancy == "multi" ? 1 : 0

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait"]
    command     = "gitops-tenancy"
  }
}

# This layer runs beside the engine, since only Flux's secrets need that. The wait ends as soon as the engine fails; its own
# end is later than any of the engine's.
resource "terraform_data" "store" {
  count = local.external ? 1 : 0

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait", "--timeout=30m"]
    command     = "gitops-store"
  }

  # That has an answer at once.
  depends_on = [terraform_data.tenancy]
}

resource "kubectl_manifest" "secret" {
  for_each = { for name, data in {
    flux-system = local.credentials
    sops-age    = { "age.agekey" = "SOPS_AGE_KEY" }
  } : name => data if local.external }

  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true

  yaml_body = yamlencode({
    apiVersion = "external-secrets.io/v1"
    kind       = "ExternalSecret"
    metadata   = { name = each.key, namespace = local.namespace }
    spec = {
      refreshInterval = "1h0m0s"
      secretStoreRef  = local.store
      target          = { name = each.key }
      data            = [for key, name in each.value : { secretKey = key, remoteRef = { key = name } }]
    }
  })

  depends_on = [kubectl_manifest.namespace, terraform_data.store]
}

# A source whose credentials are not there yet fails, and is looked at again only after a pause that grows.
resource "terraform_data" "secrets" {
  count            = local.external ? 1 : 0
  triggers_replace = [for secret in kubectl_manifest.secret : secret.uid]

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait"]
    command     = "gitops-secrets"
  }
}

# Nothing here waits for pods; castle's gates watch. See the engine.
resource "helm_release" "flux" {
  name            = "flux"
  namespace       = local.namespace
  chart           = "${var.charts}/flux"
  version         = local.chart.version
  wait            = false
  upgrade_install = true

  # What flux bootstrap or flux install have put there is taken over, not refused.
  take_ownership = true

  values = [yamlencode({ multiTenancy = var.cluster.gitops.tenancy == "multi" })]

  depends_on = [kubectl_manifest.namespace, terraform_data.tenancy]
}

# Each event of the other controllers is waited for, seconds where nobody takes it: the first ones come with the source.
resource "terraform_data" "notifications" {
  triggers_replace = helm_release.flux.metadata.revision

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait"]
    command     = "gitops-notifications"
  }
}

resource "kubectl_manifest" "source" {
  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true

  yaml_body = yamlencode({
    apiVersion = "source.toolkit.fluxcd.io/v1"
    kind       = "GitRepository"
    metadata   = { name = "flux-system", namespace = local.namespace, annotations = local.stays }
    spec = {
      interval  = "1m0s"
      url       = var.cluster.gitops.url
      ref       = { branch = var.cluster.gitops.branch }
      secretRef = { name = "flux-system" }
    }
  })

  depends_on = [terraform_data.notifications, terraform_data.secrets]
}

resource "kubectl_manifest" "kustomization" {
  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true
  # When it goes, its controller must still be there to take what it had applied with it.
  wait = true

  yaml_body = yamlencode({
    apiVersion = "kustomize.toolkit.fluxcd.io/v1"
    kind       = "Kustomization"
    metadata   = { name = "flux-system", namespace = local.namespace, annotations = local.stays }
    spec = {
      interval      = "10m0s"
      retryInterval = "10s"
      timeout       = "5m0s"
      path          = "./${var.cluster.gitops.path}"
      prune         = true
      # The layer's gate waits for every Kustomization at the source's revision, at once and not every five seconds.
      wait = false
      # The chart's, which is cluster-admin. Others in this namespace have it without naming it.
      serviceAccountName = "flux-reconciler"
      # The controllers go after this. What it applied has finalizers of theirs, such as further Kustomizations: gone
      # before it is, or their namespace would never be.
      deletionPolicy = "WaitForTermination"
      sourceRef      = { kind = "GitRepository", name = "flux-system" }
      decryption     = { provider = "sops", secretRef = { name = "sops-age" } }
    }
  })

  depends_on = [kubectl_manifest.source]
}
