package registry

import (
	"encoding/json"
	"errors"
	"net/http"
)

// apiError is an answer in the distribution specification's form: a status, one of its codes, a sentence.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func (e *apiError) write(w http.ResponseWriter) {
	type diagnostic struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(map[string][]diagnostic{"errors": {{e.code, e.message}}})
	if err != nil {
		http.Error(w, e.code, e.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(body) // a client that went away is no failure of ours
}

// fail answers with err. What is not an apiError is a failure of the disk or the connection: its text stays in the log,
// since it holds paths.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		if s.errorLog != nil {
			s.errorLog.Printf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		e = &apiError{http.StatusInternalServerError, "UNKNOWN", "the registry could not finish the request; its log says why"}
	}
	e.write(w)
}
