// Command awsprovider stands in for HashiCorp's provider for AWS where OpenTofu needs one to validate, test and plan the module
// platform-aws: the real one is not to be had as a Go module. It knows the real one's schema, see extract, and calls nobody.
//
// What it cannot say: whether a text is one of the values that the real one takes, which arguments exclude each other, and what AWS thinks.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
)

func main() {
	known, err := schemas()
	if err == nil {
		err = tf5server.Serve("registry.opentofu.org/hashicorp/aws", func() tfprotov5.ProviderServer { return provider{known: known} })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
