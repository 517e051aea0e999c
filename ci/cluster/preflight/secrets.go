package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/secrets"
)

// openFiles opens them with the age key.
func openFiles(_ context.Context, s *inspection) []finding {
	if _, err := s.files(); err != nil {
		var found []finding
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found = append(found, finding{Failed, line, "give the age key of these files with --age-key, or restore them from Git; dagger call secrets-list --cluster " +
				s.described.Name + " shows what can be read"})
		}
		return found
	}
	return ok("%s opened by the age key", rendering.Count(len(s.described.Secrets.SOPS), "file"))
}

// readInfisical logs in and reads.
func readInfisical(_ context.Context, s *inspection) []finding {
	if !s.described.Secrets.Infisical.Has() {
		return ok("the cluster has none: its SOPS files hold all secrets")
	}
	err := s.opened().Infisical
	if refused, is := errors.AsType[*secrets.InfisicalError](err); is {
		fix := refused.Fix()
		return []finding{{Failed, strings.TrimSuffix(refused.Error(), "; "+fix), cmp.Or(fix, "check secrets.infisical in cluster.yaml")}}
	}
	if err != nil {
		return notChecked("%s", seeRow("its client is not known", groupSecrets, "complete"))
	}
	if n := s.opened().Withheld; n > 0 {
		return notChecked("%s", seeRow(fmt.Sprintf("its identity logs in, and is not given %s", rendering.Count(n, "secret")), groupSecrets, "complete"))
	}
	return ok("its identity logs in and reads %s; whether it may write is seen when create keeps something there", s.described.Secrets.Infisical.Path)
}

// identities asks Infisical as those that go into the cluster: what they must not read, and what they have to. Create proves the same.
func identities(ctx context.Context, s *inspection) []finding {
	i := s.described.Secrets.Infisical
	if !i.Has() {
		return ok("the cluster has no Infisical, and none of its identities")
	}
	opened := s.opened()
	if opened.Infisical != nil {
		return notChecked("%s", seeRow("castle's own cannot be asked for what they must not see", groupSecrets, "Infisical"))
	}
	for _, seen := range opened.Secrets {
		if seen.Source == secrets.SourceSOPS && strings.HasPrefix(seen.Name, "INFISICAL_") && seen.State != secrets.StatePresent {
			return notChecked("%s", seeRow("they are not known", groupSecrets, "complete"))
		}
	}
	in := secrets.Inputs{Folder: s.cluster.Folder, AgeKey: s.cluster.AgeKey, Deadline: s.limit}
	_, err := secrets.Readers(ctx, s.described, opened.Values.All(), in)
	var found []finding
	if wrong, is := errors.AsType[*secrets.ReadersError](err); is {
		for _, problem := range wrong.Problems {
			found = append(found, finding{Failed, problem.Text, problem.Fix})
		}
		return found
	}
	if refused, is := errors.AsType[*secrets.InfisicalError](err); is {
		fix := refused.Fix()
		return []finding{{Failed, strings.TrimSuffix(refused.Error(), "; "+fix), cmp.Or(fix, "check secrets.infisical in cluster.yaml")}}
	}
	if err != nil {
		return notChecked("%v", err)
	}
	return ok("they cannot read %s, and are kept from nothing that is in %s and %s", i.Path, i.FluxPath, i.WorkloadsPath)
}

// complete names every secret that is missing or cannot be used.
func complete(_ context.Context, s *inspection) []finding {
	opened := s.opened()
	var found []finding
	unknown, there := 0, 0
	for _, seen := range opened.Secrets {
		switch {
		case seen.State == secrets.StateMissing || seen.State == secrets.StateUnfit:
			found = append(found, finding{Failed, strings.Replace(seen.Problem, ": "+seen.Fix, "", 1), seen.Fix})
		case seen.State == secrets.StateUnknown:
			unknown++
		case seen.What != "" && seen.State == secrets.StatePresent:
			there++
		}
	}
	if unknown > 0 {
		found = append(found, notChecked("%s", fmt.Sprintf("%s whose source could not be read", rendering.Count(unknown, "secret")))...)
	}
	if found == nil {
		return ok("%s, none is missing", rendering.Count(there, "secret"))
	}
	return found
}
