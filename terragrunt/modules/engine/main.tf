locals {
  namespace = "external-secrets"
  image     = { repository = "ghcr.io/external-secrets/external-secrets" }

  # Without a project there is no store of castle's: one of another kind can come with the GitOps repository.
  infisical = var.cluster.secrets.infisical == "none" ? [] : [var.cluster.secrets.infisical]

  # Whoever may make an ExternalSecret for a store can name any folder of the environment, whatever the store's own is: what can be read is
  # decided by the identity. So each store has one of its own, which may read one folder, and is open to the namespaces that need it.
  stores = merge([for infisical in local.infisical : {
    infisical = {
      folder     = infisical.workloadsPath
      namespaces = concat([local.namespace], infisical.namespaces) # the first for the proof
      secret     = kubernetes_secret_v1.infisical[0].metadata[0].name
    }
    infisical-flux = {
      folder     = infisical.fluxPath
      namespaces = ["flux-system"]
      secret     = kubernetes_secret_v1.flux[0].metadata[0].name
    }
  }]...)
}

# Nothing here waits for pods: Helm polls every two seconds, and what it waits for is not yet what is needed. castle's
# gates watch. The version is of the chart that is there, which charts.yaml pins; with it a plan needs no cluster.
resource "helm_release" "external_secrets" {
  name             = "external-secrets"
  namespace        = local.namespace
  create_namespace = true
  chart            = "${var.charts}/external-secrets"
  version          = yamldecode(file("${var.charts}/external-secrets/Chart.yaml")).version
  wait             = false
  # A release that an interrupted run left behind is taken up, not refused.
  upgrade_install = true

  # The webhook's certificate is there before it starts, and its pods are asked early whether they are ready: the chart has
  # no values for that, and everything that needs a secret would wait.
  postrender = {
    binary_path = "castle-cluster"
    args        = ["postrender", "external-secrets"]
  }

  values = [yamlencode({
    installCRDs = true
    # Secrets that are asked for at once do not wait for each other.
    concurrent     = 4
    image          = local.image
    webhook        = { image = local.image }
    certController = { image = local.image }
    # Who may edit a namespace may not ask for secrets there: that is for the cluster's administrators and for Flux. The postrenderer takes away
    # what the chart gives to admin, for which it has no value. Nothing here binds Services to secrets.
    rbac = { aggregateToEdit = false, aggregateToView = false, servicebindings = { create = false } }
  })]
}

# The store and the proof are validated by the operator's webhook. This gate opens when it has answered.
resource "terraform_data" "webhook" {
  triggers_replace = helm_release.external_secrets.metadata.revision

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait"]
    command     = "engine-webhook"
  }
}

# The machine identities that read Infisical for the workloads and for Flux: written to the cluster only, never to the state. An older castle has
# written its own identity into the first, which is replaced.
resource "kubernetes_secret_v1" "infisical" {
  count = length(local.infisical)

  metadata {
    name      = "infisical-credentials"
    namespace = local.namespace
  }

  data_wo = {
    clientId     = var.infisical_workloads_client_id
    clientSecret = var.infisical_workloads_client_secret
  }

  # What cannot be read back cannot be compared; a digest says when to write it anew.
  data_wo_revision = 1 + parseint(substr(sha256(nonsensitive("${var.infisical_workloads_client_id}:${var.infisical_workloads_client_secret}")), 0, 7), 16)

  depends_on = [helm_release.external_secrets]
}

resource "kubernetes_secret_v1" "flux" {
  count = length(local.infisical)

  metadata {
    name      = "infisical-flux-credentials"
    namespace = local.namespace
  }

  data_wo = {
    clientId     = var.infisical_flux_client_id
    clientSecret = var.infisical_flux_client_secret
  }

  data_wo_revision = 1 + parseint(substr(sha256(nonsensitive("${var.infisical_flux_client_id}:${var.infisical_flux_client_secret}")), 0, 7), 16)

  depends_on = [helm_release.external_secrets]
}

import {
  for_each = length(local.infisical) > 0 ? toset([for id in var.adopt : id if endswith(id, "/infisical-credentials")]) : []
  to       = kubernetes_secret_v1.infisical[0]
  id       = each.value
}

import {
  for_each = length(local.infisical) > 0 ? toset([for id in var.adopt : id if endswith(id, "/infisical-flux-credentials")]) : []
  to       = kubernetes_secret_v1.flux[0]
  id       = each.value
}

# The store that an older castle has made is the workloads' one.
moved {
  from = kubectl_manifest.store[0]
  to   = kubectl_manifest.store["infisical"]
}

# The API server validates what it is given; to do it here as well costs a download of all its schemas.
resource "kubectl_manifest" "store" {
  for_each = local.stores

  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true

  yaml_body = yamlencode({
    apiVersion = "external-secrets.io/v1"
    kind       = "ClusterSecretStore"
    metadata   = { name = each.key }
    spec = {
      conditions = [{ namespaces = each.value.namespaces }]
      provider = {
        infisical = {
          hostAPI = local.infisical[0].url
          auth = {
            universalAuthCredentials = {
              for field in ["clientId", "clientSecret"] : field => {
                name      = each.value.secret
                namespace = local.namespace
                key       = field
              }
            }
          }
          secretsScope = {
            projectSlug     = local.infisical[0].slug
            environmentSlug = local.infisical[0].environment
            secretsPath     = each.value.folder
          }
        }
      }
    }
  })

  depends_on = [terraform_data.webhook]
}

# A secret that is asked for before its store is ready fails, and is asked for again only after a pause that grows.
resource "terraform_data" "store" {
  count            = length(local.infisical)
  triggers_replace = [for store in kubectl_manifest.store : store.uid]

  provisioner "local-exec" {
    interpreter = ["castle-cluster", "wait"]
    command     = "engine-store"
  }
}

# Proof that a secret comes through: of no use to anybody, so that nothing is exposed by it.
resource "kubectl_manifest" "proof" {
  count = length(local.infisical)

  server_side_apply = true
  validate_schema   = false
  force_conflicts   = true

  yaml_body = yamlencode({
    apiVersion = "external-secrets.io/v1"
    kind       = "ExternalSecret"
    metadata = {
      name      = "castle-proof"
      namespace = local.namespace
    }
    spec = {
      refreshInterval = "1h0m0s"
      secretStoreRef  = { kind = "ClusterSecretStore", name = "infisical" }
      target          = { name = "castle-proof", template = { data = { proof = "{{ .proof | sha256sum }}" } } }
      data            = [{ secretKey = "proof", remoteRef = { key = "CASTLE_PROOF" } }]
    }
  })

  depends_on = [terraform_data.store]
}
