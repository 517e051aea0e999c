package infisical

import "time"

// Seed is what a world without a state starts from: the part "infisical" of the world's world.yaml.
type Seed struct {
	RequestsPerMinute int       `yaml:"requestsPerMinute"` // above it the answer is 429; 0 is no limit
	Projects          []Project `yaml:"projects"`
}

// Project is one project with the machine identities that may use it.
type Project struct {
	ID           string                                  `yaml:"id"`
	Slug         string                                  `yaml:"slug"`
	Clients      []Client                                `yaml:"clients"`
	Policies     []Policy                                `yaml:"policies,omitempty"`
	Environments map[string]map[string]map[string]string `yaml:"environments"` // slug, folder's path, secret's name: value
}

// Client is a client id and secret of a machine identity's universal auth.
type Client struct {
	ID       string        `yaml:"id"`
	Secret   string        `yaml:"secret"`
	TokenTTL time.Duration `yaml:"tokenTTL"`           // 0 is 30 days, Infisical's own default
	ReadOnly bool          `yaml:"readOnly,omitempty"` // it may read all secrets, and nothing else
	// Permissions are the rules of its role; without any it may do everything with secrets and folders.
	Permissions []Permission `yaml:"permissions,omitempty"`
}

const defaultTokenTTL = 30 * 24 * time.Hour

func (c Client) ttl() time.Duration {
	if c.TokenTTL > 0 {
		return c.TokenTTL
	}
	return defaultTokenTTL
}
