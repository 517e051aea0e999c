output "endpoint" {
  description = "Name of the load balancer of both APIs, Kubernetes's at 6443 and Talos's at 50000."
  value       = aws_lb.api.dns_name
}

output "public_addresses" {
  description = "Public addresses of the machines, by the node's name: known only when they are there, and others after a machine was stopped."
  value       = { for name, instance in aws_instance.node : name => instance.public_ip }
}

output "instance_ids" {
  description = "Ids of the instances, by the node's name."
  value       = { for name, instance in aws_instance.node : name => instance.id }
}

output "vpc_id" {
  description = "Id of the VPC."
  value       = aws_vpc.cluster.id
}
