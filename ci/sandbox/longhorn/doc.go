// Package longhorn is a simulator of Longhorn: of its manager, which makes the StorageClass, the settings, the engine image and the
// instance managers, of what its driver deployer makes, of the CSI sidecars that provision and attach volumes, and of its removal.
// It acts only where the pod that would act is ready, so that a cluster without them has no volumes, as a real one.
//
// The rules are those of longhorn-manager v1.11.1: controller/kubernetes_configmap_controller.go (the StorageClass is made by the
// manager, out of a ConfigMap of the chart), controller/instance_manager_controller.go and engine_image_controller.go (one of each on
// a manager's node, without which nothing is attached), app/driver.go and csi/deployment.go (the driver's object, four Deployments and
// a DaemonSet, made once every manager answers), csi/controller_server.go (no volume is smaller than 10 MiB), app/uninstall.go and
// controller/uninstall_controller.go (no removal without the flag; then managers, driver and StorageClass go, in this order). Of the
// sidecars they are those of Kubernetes' external-provisioner and external-attacher, which Longhorn ships unchanged: a volume is removed
// only when it is attached nowhere, and an attachment goes only with the attacher's finalizer.
//
// What it does not play: replicas, engines, snapshots, backups, the webhooks, and what a volume holds. A volume's files are a folder
// on the disk of the proving ground, whichever node it is attached to.
package longhorn
