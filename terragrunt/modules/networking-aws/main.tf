locals {
  namespace = "kube-system"
}

# Makes a load balancer of AWS for each Service of type LoadBalancer, instead of MetalLB, which announces addresses that no VPC would carry.
# It also takes the taint off new nodes and gives them their zones. AWS's other controller, aws-load-balancer-controller, would have to be
# installed beside it, with webhooks and more rights, for what nothing here asks for.
resource "helm_release" "cloud_controller_manager" {
  name            = "aws-cloud-controller-manager"
  namespace       = local.namespace
  chart           = "${var.charts}/aws-cloud-controller-manager"
  version         = one(regex("(?m)^version: *([^ \n]+)", file("${var.charts}/aws-cloud-controller-manager/Chart.yaml"))) # OpenTofu cannot read its YAML
  wait            = false
  upgrade_install = true

  values = [yamlencode({
    args = [
      "--v=2",
      "--cloud-provider=aws",
      "--cluster-name=${var.cluster.name}",
      # The pods' network is the CNI's.
      "--configure-cloud-routes=false",
    ]
    # Instances answer with credentials over one hop, see platform-aws: to a pod that has the node's network.
    hostNetworking = true
  })]
}
