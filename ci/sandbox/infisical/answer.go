package infisical

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// refusal is an answer that is not a success, in the shape that Infisical's error handler gives it. Its message may name
// secrets and paths, never values.
type refusal struct {
	status  int
	kind    string
	message string
}

func (r *refusal) Error() string { return r.message }

func badRequest(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "BadRequest", fmt.Sprintf(format, args...)}
}

func unauthorized(message string) *refusal {
	return &refusal{http.StatusUnauthorized, "UnauthorizedError", message}
}

// tokenError is what a token that cannot be verified gets: Infisical answers 403, not 401, to an expired one.
func tokenError(message string) *refusal {
	return &refusal{http.StatusForbidden, "TokenError", message}
}

func forbidden(format string, args ...any) *refusal {
	return &refusal{http.StatusForbidden, "PermissionDenied", fmt.Sprintf(format, args...)}
}

// forbiddenRequest is a 403 that no single permission explains.
func forbiddenRequest(format string, args ...any) *refusal {
	return &refusal{http.StatusForbidden, "ForbiddenError", fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *refusal {
	return &refusal{http.StatusNotFound, "NotFound", fmt.Sprintf(format, args...)}
}

func unprocessable(format string, args ...any) *refusal {
	return &refusal{http.StatusUnprocessableEntity, "ValidationFailure", fmt.Sprintf(format, args...)}
}

func write(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err == nil {
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client is gone
		return
	}
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{http.StatusInternalServerError, "InternalServerError", "Something went wrong"}
	}
	w.WriteHeader(r.status)
	json.NewEncoder(w).Encode(map[string]any{ //nolint:errcheck // the client is gone
		"reqId": "req-" + uuid.NewString(), "statusCode": r.status, "message": r.message, "error": r.kind,
	})
}
