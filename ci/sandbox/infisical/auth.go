package infisical

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// identity is who a token was given to.
type identity struct {
	Client
	project     string       // id
	permissions []Permission // the last one that fits counts
}

// claims are those of the tokens that Infisical gives to machine identities.
type claims struct {
	ClientID string `json:"clientId"`
	TTL      int64  `json:"ttl"`    // seconds that a renewal adds
	MaxEnds  int64  `json:"maxEnd"` // Unix time that no renewal goes beyond
	jwt.RegisteredClaims
}

type credential struct {
	AccessToken       string `json:"accessToken"`
	ExpiresIn         int64  `json:"expiresIn"`
	AccessTokenMaxTTL int64  `json:"accessTokenMaxTTL"`
	TokenType         string `json:"tokenType"`
}

// login gives a token to who knows the secret. Source: Infisical 022f858, backend/src/services/identity-ua/identity-ua-service.ts (login), without its
// lockout after several wrong secrets; of tokens below, backend/src/services/identity-access-token/identity-access-token-service.ts and
// backend/src/server/plugins/error-handler.ts.
func (s *Server) login(r *http.Request, _ *identity) (any, error) {
	var body struct {
		ClientID     string `json:"clientId"`
		ClientSecret string `json:"clientSecret"`
	}
	if err := read(r, &body); err != nil {
		return nil, err
	}
	who, known := s.clients[body.ClientID]
	if !known || subtle.ConstantTimeCompare([]byte(who.Secret), []byte(body.ClientSecret)) != 1 {
		return nil, unauthorized("Invalid credentials")
	}
	now := time.Now()
	return s.sign(who, now, now.Add(defaultTokenTTL))
}

func (s *Server) sign(who identity, now, maxEnds time.Time) (credential, error) {
	ttl := who.ttl()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		ClientID: who.ID, TTL: int64(ttl.Seconds()), MaxEnds: maxEnds.Unix(),
		RegisteredClaims: jwt.RegisteredClaims{
			ID: uuid.NewString(), IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
		},
	}).SignedString(s.store.current.Load().SigningKey)
	if err != nil {
		return credential{}, err
	}
	return credential{
		AccessToken: token, ExpiresIn: int64(ttl.Seconds()), AccessTokenMaxTTL: int64(time.Until(maxEnds).Seconds()), TokenType: "Bearer",
	}, nil
}

// verify reads a token; an expired or foreign one is a TokenError (403), a revoked one is unauthorized (401).
func (s *Server) verify(token string) (*claims, identity, error) {
	st := s.store.current.Load()
	read := new(claims)
	_, err := jwt.ParseWithClaims(token, read, func(*jwt.Token) (any, error) { return st.SigningKey, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}))
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return nil, identity{}, tokenError("Your token has expired. Please re-authenticate.")
	case errors.Is(err, jwt.ErrTokenMalformed):
		return nil, identity{}, tokenError("The provided access token is malformed. Please use a valid token or generate a new one and try again.")
	case err != nil:
		return nil, identity{}, tokenError("invalid signature")
	}
	if _, revoked := st.Revoked[read.ID]; revoked {
		return nil, identity{}, unauthorized("You are not allowed to access this resource")
	}
	who, known := s.clients[read.ClientID]
	if !known {
		return nil, identity{}, unauthorized("You are not allowed to access this resource")
	}
	return read, who, nil
}

func (s *Server) authenticate(r *http.Request) (*identity, error) {
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer || token == "" {
		return nil, unauthorized("Token missing")
	}
	_, who, err := s.verify(token)
	return &who, err
}

func (s *Server) renew(r *http.Request, _ *identity) (any, error) {
	token, err := tokenOf(r)
	if err != nil {
		return nil, err
	}
	old, who, err := s.verify(token)
	if err != nil {
		return nil, err
	}
	if time.Now().Add(time.Duration(old.TTL)*time.Second).Unix() > old.MaxEnds {
		return nil, unauthorized("Failed to renew MI access token past its Max TTL expiration")
	}
	return s.sign(who, time.Now(), time.Unix(old.MaxEnds, 0))
}

func (s *Server) revoke(r *http.Request, _ *identity) (any, error) {
	token, err := tokenOf(r)
	if err != nil {
		return nil, err
	}
	old, _, err := s.verify(token)
	if err != nil {
		return nil, err
	}
	err = s.store.change(func(st *state) error {
		for id, expires := range st.Revoked {
			if time.Now().After(expires) {
				delete(st.Revoked, id)
			}
		}
		st.Revoked[old.ID] = old.ExpiresAt.Time
		return nil
	})
	return map[string]string{"message": "Successfully revoked access token"}, err
}

func tokenOf(r *http.Request) (string, error) {
	var body struct {
		AccessToken string `json:"accessToken"`
	}
	err := read(r, &body)
	return body.AccessToken, err
}
