package postrender

// metallbWebhook is known to MetalLB's certificate rotator (internal/k8s in v0.15.2), which tells the API server of the authority itself, and of
// which the controller waits for the files with pauses that double.
var metallbWebhook = server{name: "metallb-webhook-cert", service: "metallb-webhook-service", authority: "cert", organization: "metallb"}
