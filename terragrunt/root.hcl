# What all layers of all clusters have in common: the cluster's description, where states are kept and the providers. A unit
# adds its module and its real dependencies, nothing else. What goes before and after a layer (what is there is imported, the
# machines are brought up, the layer's gate is waited for) castle does beside Terragrunt.

terragrunt_version_constraint = ">= 1.1.0"

locals {
  # 2-platform → platform: the number is for people, the name is what gates, states and events are called by.
  layer = replace(basename(get_terragrunt_dir()), "/^[0-9]+-/", "")
  # cluster.yaml as castle read it: checked, with its defaults filled in. Without castle around it, Terragrunt gets it by
  # CASTLE_DESCRIPTION="$(castle-cluster describe --folder=. --format=json)".
  cluster = jsondecode(get_env("CASTLE_DESCRIPTION"))

  # Whether castle makes the machines. On talos they are there already.
  makes_machines = local.cluster.platform != "talos"

  providers = {
    proxmox = {
      source = "bpg/proxmox"
      # renovate: datasource=terraform-provider depName=bpg/proxmox
      version = "0.106.0"
      # The token comes by PROXMOX_VE_API_TOKEN.
      config = local.makes_machines ? "endpoint = ${jsonencode(local.cluster.proxmox.url)}\n  insecure = ${local.cluster.proxmox.insecure}" : ""
    }
    # These three configure themselves from KUBE_HOST, KUBE_CLUSTER_CA_CERT_DATA, KUBE_CLIENT_CERT_DATA and
    # KUBE_CLIENT_KEY_DATA.
    helm = {
      source = "hashicorp/helm"
      # renovate: datasource=terraform-provider depName=hashicorp/helm
      version = "3.2.0"
      # A chart with its CRDs is hundreds of requests; the default of 5 a second would be felt.
      config = "burst_limit = 300\n  qps         = 100"
    }
    kubernetes = {
      source = "hashicorp/kubernetes"
      # renovate: datasource=terraform-provider depName=hashicorp/kubernetes
      version = "3.2.1"
      config  = ""
    }
    kubectl = {
      source = "alekc/kubectl"
      # renovate: datasource=terraform-provider depName=alekc/kubectl
      version = "2.2.0"
      # Else a kubeconfig of whoever runs this would be read as well.
      config = "load_config_file = false"
    }
  }

  # A provider that a layer does not need would still be started twice a run.
  needs = {
    secrets    = []
    platform   = local.makes_machines ? ["proxmox"] : []
    engine     = ["helm", "kubectl", "kubernetes"]
    networking = ["helm", "kubectl"]
    storage    = ["helm", "kubectl"]
    gitops     = ["helm", "kubectl"]
  }

  # Entries of OpenTofu's lock file. castle says them: {"registry.opentofu.org/bpg/proxmox": {"0.106.0": "provider …"}, …}.
  known = jsondecode(get_env("CASTLE_PROVIDERS", "{}"))
  locks = join("\n", compact([
    for name in local.needs[local.layer] :
    try(local.known["registry.opentofu.org/${local.providers[name].source}"][local.providers[name].version], "")
  ]))

  # A file of authorities, the system's and Proxmox's, where the system does not know who signed Proxmox's certificate. The
  # provider cannot be told of them in any other way, and no other layer trusts them.
  certificates = local.layer == "platform" ? get_env("CASTLE_PROXMOX_CERTIFICATES", "") : ""

  # Where this layer's state is kept. castle says it, since it reads the states too: {"engine": {"backend": …, "config": …}, …}.
  state = jsondecode(get_env("CASTLE_BACKENDS"))[local.layer]
}

# Encryption is not set here but by TF_ENCRYPTION, so that the passphrase stands in no generated file.
remote_state {
  backend      = local.state.backend
  disable_init = true

  generate = {
    path      = "backend.tf"
    if_exists = "overwrite"
  }

  config = local.state.config
}

generate "providers" {
  path      = "providers.tf"
  if_exists = "overwrite"
  contents  = <<-EOF
    terraform {
      required_version = ">= 1.12.0"

      required_providers {
    %{~for name in local.needs[local.layer]~}

        ${name} = {
          source  = "${local.providers[name].source}"
          version = "${local.providers[name].version}"
        }
    %{~endfor~}

      }
    }
    %{~for name in local.needs[local.layer]~}

    provider "${name}" {
      ${local.providers[name].config}
    }
    %{~endfor~}
  EOF
}

# What the providers' hashes have to be, where that is known: OpenTofu refuses any other while it installs them. A machine that
# builds the providers itself has others, and castle gives none for these.
generate "lock" {
  path              = ".terraform.lock.hcl"
  if_exists         = "overwrite"
  disable_signature = true
  disable           = local.locks == ""
  contents          = local.locks
}

terraform {
  # What OpenTofu finds out is castle's to keep, not this folder's.
  copy_terraform_lock_file = false

  # castle gives OpenTofu the secrets of its layer alone, and learns from this which one it is.
  extra_arguments "layer" {
    commands = ["init", "apply", "destroy", "plan", "show"]
    env_vars = { CASTLE_LAYER = local.layer }
  }

  extra_arguments "lock" {
    commands  = ["apply", "destroy"]
    arguments = ["-lock-timeout=20s"]
  }

  # A plan writes nothing, and one that is killed must leave no lock behind.
  extra_arguments "look" {
    commands  = ["plan"]
    arguments = ["-lock=false"]
  }

  # Proxmox locks the template while it is cloned, and a disk's storage while it is written. More than this only wait
  # for each other, until one gives up.
  extra_arguments "gentle" {
    commands  = local.layer == "platform" ? ["apply", "destroy"] : []
    arguments = ["-parallelism=3"]
  }

  extra_arguments "certificates" {
    commands = local.certificates == "" ? [] : ["apply", "destroy", "plan"]
    env_vars = { SSL_CERT_FILE = local.certificates }
  }

  # castle's plan command asks for each plan in the form for programs, beside the text.
  extra_arguments "plan" {
    commands  = get_env("CASTLE_PLANS", "") == "" ? [] : ["plan"]
    arguments = ["-json-into=${get_env("CASTLE_PLANS", "")}/${local.layer}.json"]
  }
}

# No retries of Terragrunt's own: it would run a layer again, with the whole deadlines of the gates within it, for any error that speaks of a
# timeout. What can be tried again is tried again where it is known to be harmless. A rule that matches nothing is how to
# say so: without any rule there are the built-in ones.
errors {
  retry "nothing" {
    retryable_errors   = []
    max_attempts       = 1
    sleep_interval_sec = 0
  }
}

inputs = {
  cluster = local.cluster
  charts  = get_env("CASTLE_CHARTS", "/usr/share/castle/charts")
}
