package proxmox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// failure is an answer other than 200. Proxmox puts the message into the status line, where its clients read it.
type failure struct {
	code    int
	message string
	fields  map[string]string // what is wrong with each parameter
}

func (f *failure) Error() string {
	if len(f.fields) == 0 {
		return f.message
	}
	return fmt.Sprint(f.message, " ", f.fields)
}

// internal is the 500 that Proxmox answers most errors with.
func internal(format string, arguments ...any) error {
	return &failure{code: http.StatusInternalServerError, message: fmt.Sprintf(format, arguments...)}
}

// invalid is the 400 for parameters that their schema refuses; nil where there are none.
func invalid(fields map[string]string) error {
	if len(fields) == 0 {
		return nil
	}
	return &failure{code: http.StatusBadRequest, message: "Parameter verification failed.", fields: fields}
}

// page is an answer with a total beside its data.
type page struct {
	data  any
	total int
}

func writeAnswer(w http.ResponseWriter, data any) {
	body := map[string]any{"data": data}
	if part, paged := data.(page); paged {
		body = map[string]any{"data": part.data, "total": part.total}
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		writeFailure(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "max-age=0")
	_, _ = w.Write(encoded)
}

// writeFailure takes the connection over, because net/http writes no status line but its own. Where the connection
// cannot be taken, as with HTTP/2, the message is in the body only.
func writeFailure(w http.ResponseWriter, err error) {
	answer := &failure{code: http.StatusInternalServerError, message: err.Error()}
	_ = errors.As(err, &answer)
	body := map[string]any{"data": nil, "message": answer.message + "\n"}
	if len(answer.fields) > 0 {
		body["errors"] = answer.fields
	}
	encoded, _ := json.Marshal(body) // texts only
	header := http.Header{"Content-Type": {"application/json;charset=UTF-8"}, "Cache-Control": {"max-age=0"}, "Date": w.Header()["Date"]}
	response := http.Response{
		Status:     fmt.Sprintf("%d %s", answer.code, strings.Join(strings.Fields(answer.message), " ")),
		StatusCode: answer.code, ProtoMajor: 1, ProtoMinor: 1, Header: header, Close: true,
		Body: io.NopCloser(bytes.NewReader(encoded)), ContentLength: int64(len(encoded)),
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.Header().Set("Content-Type", header.Get("Content-Type"))
		w.WriteHeader(answer.code)
		_, _ = w.Write(encoded)
		return
	}
	defer conn.Close()
	_ = response.Write(conn) // a client that is gone needs no answer
}

// parameters are those of the query and the body, which is a form or a JSON object.
func parameters(r *http.Request) (url.Values, error) {
	const most = 512 << 10 // what Proxmox takes
	values := r.URL.Query()
	body, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return nil, &failure{code: http.StatusBadRequest, message: "unable to read the request: " + err.Error()}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return values, nil
	}
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, &failure{code: http.StatusBadRequest, message: "unable to parse the form: " + err.Error()}
		}
		for key, texts := range form {
			values[key] = texts
		}
	case "application/json":
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&object); err != nil {
			return nil, &failure{code: http.StatusBadRequest, message: "unable to parse the JSON: " + err.Error()}
		}
		for key, value := range object {
			switch value := value.(type) {
			case nil:
			case bool:
				values.Set(key, flag(value))
			case string:
				values.Set(key, value)
			case json.Number:
				values.Set(key, value.String())
			default:
				return nil, invalid(map[string]string{key: "got a list or an object where a value belongs"})
			}
		}
	default:
		return nil, &failure{code: http.StatusBadRequest, message: "upload content type '" + kind + "' is not supported"}
	}
	return values, nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}

// isTrue reads a boolean parameter, which has more than one notation.
func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "1", "on", "yes", "true":
		return true
	}
	return false
}

// positive reads a number that has a default.
func positive(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return n
	}
	return otherwise
}
