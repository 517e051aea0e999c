package run

import "fmt"

// MayBeRemoved refuses to remove a cluster that is protected from that. The protection is taken away where it was given, in the description, so that
// removing a cluster takes two acts.
func (c *Cluster) MayBeRemoved(command string) error {
	if !c.Description.DeletionProtection {
		return nil
	}
	return fmt.Errorf("%s is refused: cluster %s has deletionProtection: true in its cluster.yaml; take that out, and call again", command, c.Description.Name)
}
