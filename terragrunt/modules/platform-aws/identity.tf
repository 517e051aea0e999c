# What the cloud controller manager may do: make, change and remove load balancers and the groups before them, of this cluster alone, and look
# at the rest. It is its project's own list (kubernetes/cloud-provider-aws, docs/prerequisites.md) and what its code of v1.37.0 calls besides,
# without volumes, routes, instances and scaling groups, which nothing here asks it for.

data "aws_partition" "current" {}

locals {
  arn = "arn:${data.aws_partition.current.partition}"
  ec2 = "${local.arn}:ec2:${var.cluster.aws.region}:*"
  elb = "${local.arn}:elasticloadbalancing:${var.cluster.aws.region}:*"

  is_owned      = { "aws:ResourceTag/kubernetes.io/cluster/${local.name}" = "owned" }
  becomes_owned = { "aws:RequestTag/kubernetes.io/cluster/${local.name}" = "owned" }
}

resource "aws_iam_role" "controlplane" {
  name = "${local.name}-${var.cluster.aws.region}-controlplane"
  tags = { castle = local.name }

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "controlplane" {
  name = "cloud-controller-manager"
  role = aws_iam_role.controlplane.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Look"
        Effect = "Allow"
        Action = [
          "ec2:DescribeAvailabilityZones", "ec2:DescribeInstances", "ec2:DescribeInstanceTopology", "ec2:DescribeRegions", "ec2:DescribeRouteTables",
          "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs",
          "elasticloadbalancing:DescribeListeners", "elasticloadbalancing:DescribeLoadBalancerAttributes", "elasticloadbalancing:DescribeLoadBalancerPolicies",
          "elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTargetGroupAttributes", "elasticloadbalancing:DescribeTargetGroups",
          "elasticloadbalancing:DescribeTargetHealth",
        ]
        Resource = "*"
      },
      {
        # A group that is made takes two permissions: in the cluster's VPC, and as one that bears the cluster's tag from its first moment.
        Sid       = "MakeGroupsInVPC"
        Effect    = "Allow"
        Action    = "ec2:CreateSecurityGroup"
        Resource  = "${local.ec2}:vpc/*"
        Condition = { StringEquals = local.is_owned }
      },
      {
        Sid       = "MakeGroups"
        Effect    = "Allow"
        Action    = "ec2:CreateSecurityGroup"
        Resource  = "${local.ec2}:security-group/*"
        Condition = { StringEquals = local.becomes_owned }
      },
      {
        # Only while one is made: else any group could be given the tag, and then be changed.
        Sid       = "TagGroups"
        Effect    = "Allow"
        Action    = "ec2:CreateTags"
        Resource  = "${local.ec2}:security-group/*"
        Condition = { StringEquals = merge(local.becomes_owned, { "ec2:CreateAction" = "CreateSecurityGroup" }) }
      },
      {
        Sid       = "ChangeGroups"
        Effect    = "Allow"
        Action    = ["ec2:AuthorizeSecurityGroupIngress", "ec2:DeleteSecurityGroup", "ec2:RevokeSecurityGroupIngress"]
        Resource  = "${local.ec2}:security-group/*"
        Condition = { StringEquals = local.is_owned }
      },
      {
        Sid       = "MakeLoadBalancers"
        Effect    = "Allow"
        Action    = ["elasticloadbalancing:AddTags", "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup"]
        Resource  = "${local.elb}:*"
        Condition = { StringEquals = local.becomes_owned }
      },
      {
        Sid    = "ChangeLoadBalancers"
        Effect = "Allow"
        Action = [
          "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer", "elasticloadbalancing:AttachLoadBalancerToSubnets", "elasticloadbalancing:ConfigureHealthCheck",
          "elasticloadbalancing:CreateListener", "elasticloadbalancing:CreateLoadBalancerListeners", "elasticloadbalancing:CreateLoadBalancerPolicy",
          "elasticloadbalancing:DeleteListener", "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteLoadBalancerListeners",
          "elasticloadbalancing:DeleteTargetGroup", "elasticloadbalancing:DeregisterInstancesFromLoadBalancer", "elasticloadbalancing:DeregisterTargets",
          "elasticloadbalancing:DetachLoadBalancerFromSubnets", "elasticloadbalancing:ModifyListener", "elasticloadbalancing:ModifyLoadBalancerAttributes",
          "elasticloadbalancing:ModifyTargetGroup", "elasticloadbalancing:ModifyTargetGroupAttributes", "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
          "elasticloadbalancing:RegisterTargets", "elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer",
          "elasticloadbalancing:SetLoadBalancerPoliciesOfListener", "elasticloadbalancing:SetSecurityGroups",
        ]
        Resource  = "${local.elb}:*"
        Condition = { StringEquals = local.is_owned }
      },
      {
        # The first load balancer of an account makes AWS's own role for them.
        Sid       = "FirstLoadBalancer"
        Effect    = "Allow"
        Action    = "iam:CreateServiceLinkedRole"
        Resource  = "${local.arn}:iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com/*"
        Condition = { StringEquals = { "iam:AWSServiceName" = "elasticloadbalancing.amazonaws.com" } }
      },
    ]
  })
}

resource "aws_iam_instance_profile" "controlplane" {
  name = aws_iam_role.controlplane.name
  role = aws_iam_role.controlplane.name
  tags = { castle = local.name }
}
